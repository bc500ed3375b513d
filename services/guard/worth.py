"""What refusals were worth in R: the mean of all orders of the same time less that of the refused ones.

A refused order that nobody sent is traded on paper over the bars after its verdict; what was sent counts as
it was settled. Orders are compared within windows of as many orders each, for markets drift while a guard
refuses more or less. R is not cut, for that would take from trend followers their winners. Neighbours share
their luck: blocks of them are weighed anew, a thousand times, by chance. Winners that refused orders have not
shown yet count too: each weighing adds one more refused order, that wins as much as one does, and one more
of the others, that loses as much as any, or its stop.

Sources: Gaffke, "Three test statistics for a nonparametric one-sided hypothesis on the mean of a nonnegative
variable" (Mathematical Methods of Statistics 2005); Fay, Proschan and Brittain, "Combining one-sample
confidence procedures for inference in the two-sample case" (Biometrics 2015).
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from math import ceil
from typing import Any

import numpy as np

from schemas.settings import ExecutionSettings
from services.guard.ledger import CheckedOrder, Ledger
from services.guard.order_plan import plan_of
from services.statistics.blocks import Floats
from trading_core.bars import BarSeries, BoolArray

FEWEST = 10  # orders on either side
BLOCKS, WEIGHINGS = 4, 999  # blocks of a window
TAIL, NORMAL = 0.025, 1.96  # on either side of the interval
POWER_Z = 0.84  # four readings of five find what is there


def worth_of(ledger: Ledger) -> dict[str, Any]:
    """Answer, R of a refusal with its 95 % interval, how many more orders it takes, and what counted.

    An order that was checked while one of its symbol, side and strategy with the same fate was open is the
    same bet, and does not count again.
    """
    counted, left_out, targets = list[tuple[float, bool]](), Counter[str](), list[float]()
    open_until = dict[tuple[str, str, str, bool], int]()
    for checked in sorted(ledger.orders.values(), key=lambda checked: checked.at):
        order, refused, found = checked.order, checked.verdict.status != "pass", _outcome_of(checked, ledger)
        bet = (order.symbol, order.side, order.strategy, refused)
        if not isinstance(found, str) and checked.at < open_until.get(bet, 0):
            found = "repeated"
        if isinstance(found, str):
            left_out[found] += 1
            continue
        open_until[bet] = found["closed_at"]
        counted.append((float(found["r"]), refused))
        if refused and (reach := _reach_of(checked)) is not None:
            targets.append(reach)
    r, is_refused = np.array([row[0] for row in counted]), np.array([row[1] for row in counted], dtype=bool)
    best = float(np.mean(targets)) if targets else None
    counts = {"refused": int(is_refused.sum()), "passed": int((~is_refused).sum())}
    return {**weigh_refusals(r, is_refused, best), **counts, "not_counted": dict(sorted(left_out.items()))}


def weigh_refusals(r: Floats, refused: BoolArray, best: float | None = None) -> dict[str, Any]:
    """The worth of refusals: outcomes in order of time, R after costs, and which were refused, both (n,).

    `best` is what one more refused order may win in R, if more than any of them did. No figures where there
    are too few orders on a side, or where nothing shows what an order of a side can win. `finds_r` is the
    worth that as many orders find in four readings of five, and `orders_needed` how many more, refused as
    often, so find this mean.
    """
    n, worth = len(r), dict.fromkeys(("worth_r", "lower", "upper", "finds_r", "orders_needed"))
    if min(refused.sum(), (~refused).sum()) < FEWEST:
        return {"answer": "unknown", **worth}
    if min(max(best or 0.0, r[refused].max()), r[~refused].max()) <= 0.0:
        return {"answer": "unknown", **worth}
    windows = max(1, round(n / BLOCKS / ceil(n ** (1.0 / 3.0))))
    block = np.arange(n) * windows * BLOCKS // n
    sizes, share, level = (np.bincount(block // BLOCKS, of) for of in (None, refused, r))
    share, level = ((of / sizes)[block // BLOCKS] for of in (share, level))
    gained = np.bincount(block, (share - refused) * (r - level))
    counts = np.bincount(block, refused & (share < 1.0))  # where all are refused, nothing compares
    if counts.sum() < FEWEST:
        return {"answer": "unknown", **worth}
    mean = float(gained.sum() / counts.sum())
    lower, upper = _interval(r, refused, best, np.stack((gained, counts), axis=1))
    answer = "helped" if lower > 0.0 else "hurt" if upper < 0.0 else "unknown"
    finds, loses = (reach * (1.0 + POWER_Z / NORMAL) for reach in (mean - lower, upper - mean))
    needed = None if mean == 0.0 else max(ceil(n * ((finds if mean > 0.0 else loses) / mean) ** 2) - n, 1)
    needed = needed if answer == "unknown" else 0
    return {
        "answer": answer, "worth_r": mean, "lower": lower, "upper": upper, "finds_r": finds,
        "orders_needed": needed,
    }  # fmt: skip


def _interval(r: Floats, refused: BoolArray, best: float | None, blocks: Floats) -> list[float]:
    """Of the worth: `blocks` (b, 2) has of each what its refusals gained, in R, and how many they were."""
    from scipy.special import stdtrit  # costs a tenth of a second, and few orders never ask

    gained, counts = blocks.T
    draw = np.random.Generator(np.random.PCG64(0))
    weights, unseen = (draw.standard_exponential((WEIGHINGS, count)) for count in (len(blocks), 2))
    mean, share, high = gained.sum() / counts.sum(), refused.mean(), r[refused].max()
    wide = stdtrit(max(counts.sum() ** 2 / (counts @ counts) - 1.0, 1.0), 1.0 - TAIL) / NORMAL
    (low, low_of_others), found = (min(r[of].min(), -1.0) for of in (refused, ~refused)), list[float]()
    for of_refused, of_others, level in (
        (max(high, best or high), low_of_others, TAIL),
        (low, r[~refused].max(), 1.0 - TAIL),
    ):
        moves = ((1.0 - share) * (r.mean() - of_refused), share * (of_others - r.mean()))
        drawn = (weights @ gained + unseen @ moves) / (weights @ counts + unseen[:, 0])
        found.append(float(mean + wide * (np.quantile(drawn, level) - mean)))
    return found


def _outcome_of(checked: CheckedOrder, ledger: Ledger) -> Mapping[str, Any] | str:
    """What became of an order, with its R, or why it has none."""
    on_paper = _only_on_paper(checked, ledger)
    if checked.verdict.reduces or checked.order.stop is None:
        return "exit" if checked.verdict.reduces else "no_stop"
    found = (ledger.outcomes if on_paper else ledger.settled).get(checked.id)
    if found is None:
        return "no_bars_yet" if on_paper else "not_settled"
    return str(found.get("problem") or "no_r") if found["r"] is None else found


def _reach_of(checked: CheckedOrder) -> float | None:
    """R at the target; None without one, or where no price is known."""
    order, price = checked.order, checked.order.price or checked.price
    if price is None or order.target is None or order.stop in (None, price):
        return None
    return abs((order.target - price) / (price - (order.stop or 0.0)))


def _only_on_paper(checked: CheckedOrder, ledger: Ledger) -> bool:
    return not (checked.verdict or checked.id in ledger.spent or checked.id in ledger.settled)


def trade_refused(
    ledger: Ledger, bars: Mapping[str, BarSeries], execution: ExecutionSettings, now: int
) -> Iterator[dict[str, Any]]:
    """Payloads of rows `guard_outcome`: what became of refused orders by now, on bars by symbol.

    An order enters after the bar in which its verdict fell, so that no price before it counts. In the same
    bar as one that was sent, or refused before, it is the same trade, and has no R of its own; nor has one
    whose stop is nearer than what spread and slippage cost.
    """
    from trading_core.research.counterfactual import PaperPlans  # loads the engine
    from trading_core.rules.columns import RuleColumns

    papers = {symbol: PaperPlans(RuleColumns(series.select((symbol,)))) for symbol, series in bars.items()}
    taken = set[tuple[str, str, int]]()
    for checked in sorted(ledger.orders.values(), key=lambda checked: _only_on_paper(checked, ledger)):
        order, paper = checked.order, papers.get(checked.order.symbol)
        if paper is None or checked.verdict.reduces or order.stop is None:
            continue
        closes = paper.bars.close_times
        row, until = (int(np.searchsorted(closes, at)) for at in (checked.at, now + 1))
        if row >= until or paper.bars.open_of(0) > checked.at:
            continue
        entry = (order.symbol, order.side, int(closes[row]))
        problem, r, end = "repeated" if entry in taken else None, None, row
        taken.add(entry)
        if checked.id in ledger.outcomes or not _only_on_paper(checked, ledger):
            continue
        close = float(paper.bars.close[row, 0])
        price = close if order.kind == "market" else order.price or close
        if abs(price - order.stop) <= price * (2.0 * execution.slippage + execution.spread_bps * 1e-4):
            problem = problem or "stop_within_spread"
        if problem is None:
            plan = plan_of(order, close)
            rests = None if plan.entry is None else plan.horizon_bars
            found = paper.outcome(plan, 0, row, until, execution.for_one_unit, rests)
            r, end = found or (None, row + 1 + (rests or 0) + plan.horizon_bars)
            problem = None if found else "never_filled"
        if end < until:
            yield {"verdict_id": checked.id, "r": r, "problem": problem, "closed_at": int(closes[end])}
