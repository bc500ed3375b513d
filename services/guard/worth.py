"""What refusals were worth in R, against a coin that refuses as often.

A refused order that nobody sent is traded on paper over the bars after its verdict; what was sent counts as
it was settled. The worth of a refusal is the mean R of all counted orders less that of the refused ones.
Refusals come in runs and outcomes depend on their neighbours, so the coin keeps both: it is the same sequence
of refusals, begun at another order. Each such shift is divided by its own standard error, for refusals that
fall on volatile days alone would otherwise look rare.

Sources: Newey and West, "A simple, positive semi-definite, heteroskedasticity and autocorrelation consistent
covariance matrix" (Econometrica 1987); Janssen, "Studentized permutation tests for non-i.i.d. hypotheses"
(Statistics & Probability Letters 1997).
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from math import ceil
from typing import Any

import numpy as np

from schemas.settings import ExecutionSettings, GateSettings
from services.guard.ledger import CheckedOrder, Ledger
from services.guard.order_plan import plan_of
from services.statistics.blocks import Floats, winsorise
from trading_core.bars import BarSeries, BoolArray

ALPHA = 0.05
FEWEST, MOST_SHIFTS = 10, 399  # orders on either side; shifts beside the sequence itself
POWER_Z = 0.84  # four readings of five find what is there


def worth_of(ledger: Ledger) -> dict[str, Any]:
    """Answer, R of a refusal with its 95 % interval, how many more orders it takes, and what counted."""
    counted, left_out = list[tuple[int, float, bool]](), Counter[str]()
    for checked in ledger.orders.values():
        outcome = _outcome_of(checked, ledger)
        if isinstance(outcome, str):
            left_out[outcome] += 1
        else:
            counted.append((checked.at, outcome, checked.verdict.status != "pass"))
    table = np.array(sorted(counted), dtype=np.float64).reshape(-1, 3)
    refused = table[:, 2] == 1.0
    counts = {"refused": int(refused.sum()), "passed": int((~refused).sum())}
    return {**weigh_refusals(table[:, 1], refused), **counts, "not_counted": dict(sorted(left_out.items()))}


def weigh_refusals(r: Floats, refused: BoolArray) -> dict[str, Any]:
    """The worth of refusals: outcomes in order of time, R after costs, and which were refused, both (n,).

    R counts within the gate's bounds: a stop a tick away would make one order outweigh all others.
    No figures where there are too few orders on a side. `orders_needed` is how many more, refused as often,
    show this mean in four readings of five.
    """
    n, worth = len(r), dict.fromkeys(("worth_r", "lower", "upper", "orders_needed"))
    if min(refused.sum(), (~refused).sum()) < FEWEST or n * ALPHA <= 1.0:
        return {"answer": "unknown", **worth}
    bounds = GateSettings()
    r = winsorise(r, bounds.winsor_low, bounds.winsor_high)
    shifts = np.unique(np.linspace(0, n, min(n, MOST_SHIFTS + 1), endpoint=False).astype(np.int64))
    means, errors = _studentise(r, refused[(np.arange(n) - shifts[:, None]) % n])
    mean, distances = float(means[0]), np.sort(np.abs(means[1:]) / errors[1:])
    quantile = distances[ceil((1.0 - ALPHA) * len(shifts)) - 1]
    lower, upper = (float(mean + sign * quantile * errors[0]) for sign in (-1.0, 1.0))
    answer = "helped" if lower > 0.0 else "hurt" if upper < 0.0 else "unknown"
    needed = None if mean == 0.0 else ceil(n * ((quantile + POWER_Z) * errors[0] / mean) ** 2) - n
    needed = needed if answer == "unknown" else 0
    return {"answer": answer, "worth_r": mean, "lower": lower, "upper": upper, "orders_needed": needed}


def _studentise(r: Floats, refused: BoolArray) -> tuple[Floats, Floats]:
    """The worth by each row of refusals (m, n), and its standard error with Bartlett's weights, both (m,)."""
    n, count = len(r), int(refused[0].sum())
    means, lags = refused @ r / count, ceil(1.5 * n ** (1.0 / 3.0))
    moved = r - r.mean() - np.where(refused, (r - means[:, None]) * (n / count), 0.0)
    total = np.einsum("ij,ij->i", moved, moved)
    for lag in range(1, lags + 1):
        total += 2.0 * (1.0 - lag / (lags + 1.0)) * np.einsum("ij,ij->i", moved[:, lag:], moved[:, :-lag])
    return r.mean() - means, np.maximum(np.sqrt(np.maximum(total, 0.0)) / n, 1e-12)


def _outcome_of(checked: CheckedOrder, ledger: Ledger) -> float | str:
    """R of an order, or why it has none."""
    on_paper = _only_on_paper(checked, ledger)
    if checked.verdict.reduces or checked.order.stop is None:
        return "exit" if checked.verdict.reduces else "no_stop"
    found = (ledger.outcomes if on_paper else ledger.settled).get(checked.id)
    if found is None:
        return "no_bars_yet" if on_paper else "not_settled"
    return str(found.get("problem") or "no_r") if found["r"] is None else float(found["r"])


def _only_on_paper(checked: CheckedOrder, ledger: Ledger) -> bool:
    return not (checked.verdict or checked.id in ledger.spent or checked.id in ledger.settled)


def trade_refused(
    ledger: Ledger, bars: Mapping[str, BarSeries], execution: ExecutionSettings, now: int
) -> Iterator[dict[str, Any]]:
    """Payloads of rows `guard_outcome`: what became of refused orders by now, on bars by symbol.

    An order enters after the bar in which its verdict fell, so that no price before it counts. In the same
    bar as one that was sent, or refused before, it is the same trade, and has no R of its own.
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
        if problem is None:
            plan = plan_of(order, float(paper.bars.close[row, 0]))
            rests = None if plan.entry is None else plan.horizon_bars
            found = paper.outcome(plan, 0, row, until, execution.for_one_unit, rests)
            r, end = found or (None, row + 1 + (rests or 0) + plan.horizon_bars)
            problem = None if found else "never_filled"
        if end < until:
            yield {"verdict_id": checked.id, "r": r, "problem": problem, "closed_at": int(closes[end])}
