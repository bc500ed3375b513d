"""The orders of the crash test: 400 right ones by a seeded generator, and thirty faults planted into entries.

A case is plain data that any guard's adapter can read: an order with the time, the account, the quotes and
the orders that were sent before it. Every case is judged by a guard that has seen nothing else. All are long,
for some guards know no short positions.
"""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import floor
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.guards.limits import SYMBOLS
from trading_core.bars import BarSeries
from worker.feeds.sample_data import load_embedded_bars

FAULTS = Path(__file__).with_name("faults.toml")
SEED, RIGHT, PLANTED = 47, 400, 10  # planted: orders of each kind
EQUITY, USUAL_SHARE = 100_000.0, 0.05
HISTORY, ATR_BARS = 250, 14
NS, DAY_S = 1_000_000_000, 86_400
LOOK_ALIKES = str.maketrans({"A": "А", "O": "О", "I": "І", "M": "М"})  # the Cyrillic ones
# Of right orders: entries, limit entries, exits, reductions in a breach, tightened stops.
SHARES = {
    "entry": 0.3,
    "limit entry": 0.2,
    "exit": 0.2,
    "reduction in a breach": 0.15,
    "tightened stop": 0.15,
}

Case = dict[str, Any]


@dataclass(frozen=True)
class Moment:
    """A symbol after the close of a row, with what an order there is made of."""

    symbol: str
    row: int
    last: float
    atr: float
    quantity: int
    now: int


class Generator:
    """Right orders over the embedded bars, each by its own draw."""

    def __init__(self, seed: int = SEED) -> None:
        self.bars = load_embedded_bars(symbols=SYMBOLS)
        self._seed = seed

    def draw(self, *place: int) -> np.random.Generator:
        """The draw of one case."""
        return np.random.Generator(np.random.PCG64([self._seed, *place]))

    def moment(self, draw: np.random.Generator) -> Moment:
        """A symbol and a day with a history, five minutes after the close."""
        s = int(draw.integers(len(self.bars.symbols)))
        rows = np.flatnonzero(self.bars.present[:, s])
        place = int(draw.integers(HISTORY, len(rows)))
        high, low, close = (
            getattr(self.bars, name)[rows[place - ATR_BARS : place + 1], s]
            for name in ("high", "low", "close")
        )
        ranges = np.maximum(high[1:], close[:-1]) - np.minimum(low[1:], close[:-1])
        last, row = float(close[-1]), int(rows[place])
        now = int(self.bars.close_times[row]) + 300 * NS
        quantity = max(1, floor(USUAL_SHARE * EQUITY / last))
        return Moment(self.bars.symbols[s], row, last, float(ranges.mean()), quantity, now)

    def entry(self, draw: np.random.Generator, kind: str = "market", most_atr: float = 4.0) -> Case:
        """A right entry at the usual size, its stop 1 to `most_atr` ATR away."""
        at = self.moment(draw)
        price = None if kind == "market" else _cents(at.last * (1.0 - draw.uniform(0.0, 0.01)))
        start = at.last if price is None else price
        risk = draw.uniform(1.0, most_atr) * at.atr
        target = _cents(start + draw.uniform(1.5, 3.0) * risk) if draw.random() < 0.5 else None
        order = {"side": "buy", "quantity": at.quantity, "kind": kind, "price": price}
        return self._case(draw, at, {**order, "stop": _cents(start - risk), "target": target})

    def exit(self, draw: np.random.Generator, share: float = 1.0) -> Case:
        """A right exit of part or all of a position of that many times the usual size."""
        at = self.moment(draw)
        held = max(1, round(at.quantity * share))
        case = self._case(
            draw, at, {"side": "sell", "quantity": int(draw.integers(1, held + 1)), "kind": "market"}
        )
        case["positions"][at.symbol] = {"quantity": held, "price": _cents(at.last * draw.uniform(0.9, 1.1))}
        return case

    def reduction(self, draw: np.random.Generator) -> Case:
        """A right exit while a limit is broken."""
        breach = ("daily loss", "drawdown", "kill switch", "symbol", "stale")[int(draw.integers(5))]
        case = self.exit(draw, 8.0 if breach == "symbol" else 1.0)
        if breach == "daily loss":
            case["day_result"] = -0.04 * EQUITY
        elif breach == "drawdown":
            case["drawdown"] = 0.2
        elif breach == "kill switch":
            case["kill_switch"] = True
        elif breach == "stale":
            case["now"] += 9 * DAY_S * NS
        return {**case, "breach": breach}

    def tightened(self, draw: np.random.Generator) -> Case:
        """A stop order for a whole position, which takes the place of one that was cancelled."""
        case = self.exit(draw)
        quote = case["quotes"][case["order"]["symbol"]]
        stop = _cents(quote["last"] - draw.uniform(0.5, 2.0) * quote["atr"])
        held = case["positions"][case["order"]["symbol"]]["quantity"]
        case["order"] |= {"kind": "stop", "price": stop, "quantity": held}
        return case

    def _case(self, draw: np.random.Generator, at: Moment, order: dict[str, Any]) -> Case:
        levels = {
            "price": None,
            "stop": None,
            "target": None,
            "reasons": "",
            "id": "order-1",
            "seen": at.last,
        }
        return {
            "now": at.now,
            "order": {"symbol": at.symbol, **levels, **order},
            "equity": EQUITY, "cash": 0.8 * EQUITY, "positions": {},
            "day_result": _cents(draw.uniform(-0.005, 0.01) * EQUITY),
            "drawdown": round(draw.uniform(0.0, 0.08), 4),
            "quotes": {at.symbol: {"last": at.last, "atr": at.atr, "at": at.now - 300 * NS}},
            "kill_switch": False, "earlier": [], "then": None,
            "bars": {"symbol": at.symbol, "row": at.row, "forged": None},
        }  # fmt: skip


def right_cases(generator: Generator, count: int = RIGHT) -> Iterator[Case]:
    """Right orders of every kind, `count` in all."""
    makers = {
        "entry": generator.entry, "limit entry": lambda draw: generator.entry(draw, "limit"),
        "exit": generator.exit, "reduction in a breach": generator.reduction,
        "tightened stop": generator.tightened,
    }  # fmt: skip
    for number, (kind, share) in enumerate(SHARES.items()):
        for place in range(round(share * count)):
            made = makers[kind](generator.draw(1, number, place))
            yield {"id": f"right-{number}-{place}", "kind": kind, "right": True, **made}


def faulty_cases(generator: Generator, planted: int = PLANTED) -> Iterator[Case]:
    """Every fault of the bank, each planted into so many right entries whose own stop is near."""
    for number, fault in enumerate(faults()):
        for place in range(planted):
            case = plant(fault, generator.entry(generator.draw(2, number, place), most_atr=2.0), generator)
            yield {"id": f"fault-{number}-{place}", "kind": fault["name"], "right": False, **case}


def faults() -> list[dict[str, Any]]:
    """The rows of the bank."""
    return list(tomllib.loads(FAULTS.read_text("utf-8"))["fault"])


def plant(fault: dict[str, Any], case: Case, generator: Generator) -> Case:
    """The case with a fault in it."""
    order, symbol = case["order"], case["order"]["symbol"]
    quote = case["quotes"][symbol]
    if forged := fault.get("context", {}).get("forged"):  # the agent sets its levels by what it sees
        moved = quote["last"] * (forged - 1.0)
        quote["last"] += moved
        levels = {name: _cents(order[name] + moved) for name in ("stop", "target") if order[name] is not None}
        order |= levels
        case["bars"]["forged"] = order["seen"] = quote["last"]
    # "seen" is the price that the agent takes the symbol to have.
    known = {
        "last": quote["last"],
        "quantity": order["quantity"],
        "equity": case["equity"],
        "stop": order["stop"],
    }

    def value(given: Any) -> Any:
        if not isinstance(given, dict):
            return (
                {"none": None, "look-alike": _look_alike(symbol)}.get(given, given)
                if isinstance(given, str)
                else given
            )
        found = known[given["of"]] * given.get("times", 1.0) + given.get("atr", 0.0) * quote["atr"]
        return int(found) if given["of"] == "quantity" else _cents(found)

    order |= {name: value(given) for name, given in fault.get("order", {}).items()}
    case |= {name: value(given) for name, given in fault.get("account", {}).items()}
    if position := fault.get("position"):
        case["positions"][symbol] = {name: value(given) for name, given in position.items()}
    _set_context(case, fault.get("context", {}), symbol, generator)
    case["earlier"] = list(_earlier(case, fault.get("earlier", {})))
    case["then"] = fault.get("then")
    return case


def _set_context(case: Case, context: dict[str, Any], symbol: str, generator: Generator) -> None:
    case["kill_switch"] = context.get("kill_switch", False)
    case["now"] += context.get("late_days", 0) * DAY_S * NS
    if context.get("no_quote"):
        case["quotes"], case["bars"] = {}, None
    if context.get("other_bars"):
        until = generator.bars.present[: case["bars"]["row"] + 1]
        s = next(s for s, name in enumerate(SYMBOLS) if name != symbol and until[:, s].sum() >= HISTORY)
        other, row = SYMBOLS[s], int(np.flatnonzero(until[:, s])[-1])
        last = float(generator.bars.close[row, s])
        case["quotes"] = {other: {**case["quotes"][symbol], "last": last}}
        case["bars"] = {"symbol": other, "row": row, "forged": None}
        case["order"] |= {"seen": last, "quantity": max(1, floor(USUAL_SHARE * EQUITY / last))}


def _earlier(case: Case, given: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Orders that were sent before, oldest first, each with its time."""
    order = case["order"]
    if given.get("same"):
        changed = {"id": "order-0", "reasons": "first"} if given.get("other_id") else {}
        yield {"at": case["now"] - 20 * NS, "order": {**order, **changed}}
    for number in range(given.get("others", 0)):
        at = case["now"] - (given["others"] - number) * 25 * NS  # the same day: it is five minutes old
        yield {
            "at": at,
            "order": {**order, "id": f"earlier-{number}", "quantity": max(1, order["quantity"] - 1 - number)},
        }


def bars_of(case: Case, bars: BarSeries) -> BarSeries | None:
    """The bars that the agent hands over, the forged close among them."""
    if case["bars"] is None:
        return None
    given = case["bars"]
    last = int(bars.times[given["row"]])
    first = int(bars.times[max(0, given["row"] - HISTORY)])
    found = bars.select((given["symbol"],), first, last)
    if given["forged"] is None:
        return found
    close, high = found.close.copy(), found.high.copy()
    close[-1] = given["forged"]
    high[-1] = max(high[-1, 0], given["forged"])
    return replace(found, close=close, high=high)


def _look_alike(symbol: str) -> str:
    return symbol.translate(LOOK_ALIKES)


def _cents(value: float) -> float:
    return round(float(value), 2)
