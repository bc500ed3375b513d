"""What holds on every bar, whatever the settings and the script do: books, ranges, one exit authority.

The books are kept here from events alone, so the kernel cannot agree with itself.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings

from tests.trading_core.scripted_loop import Script, World, worlds
from trading_core.trigger_engine import TriggerEngine

FILLS = ("entry_filled", "add_filled", "scale_out_filled", "exit_filled")
SIGN = {"long": 1, "short": -1}
TAKEN_BACK = ("unfilled", "invalidated", "no_trade_window", "envelope", "retired")


@dataclass
class Holding:
    """One position as its fills tell it."""

    direction: int
    bought: float
    price: float
    at_close: bool  # filled at the close of its signal bar
    first: float  # quantity that R counts
    fees: float = 0.0
    left: float = 0.0
    proceeds: float = 0.0


@dataclass
class Books:
    """Cash and holdings from the events of a run."""

    world: World
    cash: float = 100_000.0
    fees: float = 0.0  # carry included
    open: dict[str, Holding] = field(default_factory=dict)
    resting: dict[str, int] = field(default_factory=dict)  # row of acceptance
    closed: dict[str, list[Holding]] = field(default_factory=lambda: defaultdict(list))

    def note(self, kind: str, symbol: str, row: int, detail: dict[str, Any]) -> None:
        """Follow one event; an order that reduces more than there is fails here."""
        if kind == "order_accepted":
            assert symbol not in self.resting
            assert symbol not in self.open
            self.resting[symbol] = row
        elif kind == "order_refused" and detail["reason"] in TAKEN_BACK and symbol in self.resting:
            del self.resting[symbol]
        elif kind == "entry_filled":
            d, quantity = SIGN[detail["direction"]], detail["quantity"]
            at_close = self.resting.pop(symbol) == row
            self.open[symbol] = Holding(
                d, quantity, detail["price"], at_close, quantity, detail["fee"], quantity
            )
            self.cash -= d * quantity * detail["price"] + detail["fee"]
            self.fees += detail["fee"]
        elif kind == "add_filled":
            held, quantity = self.open[symbol], detail["quantity"]
            held.bought += quantity
            held.left += quantity
            assert held.left == pytest.approx(detail["remaining"], abs=1e-9)
            assert held.direction == SIGN[detail["direction"]]
            held.fees += detail["fee"]
            self.fees += detail["fee"]
            self.cash -= held.direction * quantity * detail["price"] + detail["fee"]
        elif kind in ("scale_out_filled", "exit_filled"):
            held = self.open[symbol]
            assert 0.0 < detail["quantity"] <= held.left + 1e-9
            assert held.direction == SIGN[detail["direction"]]
            held.left -= detail["quantity"]
            held.fees += detail["fee"]
            self.fees += detail["fee"]
            held.proceeds += detail["quantity"] * detail["price"]
            self.cash += held.direction * detail["quantity"] * detail["price"] - detail["fee"]
            if kind == "exit_filled":
                assert held.left == pytest.approx(0.0, abs=1e-9)
                self.closed[symbol].append(self.open.pop(symbol))

    def carry(self, row: int) -> None:
        """Funding and borrow of what is held at a close; a position opened at that close pays none."""
        execution, bars = self.world.execution, self.world.bars
        for symbol, held in self.open.items():
            s = bars.symbols.index(symbol)
            if bars.present[row, s] and not held.at_close:
                rate = (
                    execution.funding_bps
                    if held.direction > 0
                    else execution.borrow_bps - execution.funding_bps
                )
                cost = held.left * float(bars.close[row, s]) * rate * 1e-4
                held.fees += cost
                self.fees += cost
                self.cash -= cost
            held.at_close = False

    def value(self, last: dict[str, float]) -> float:
        """Cash and positions at the last closes."""
        return self.cash + sum(h.direction * h.left * last[symbol] for symbol, h in self.open.items())


def _in_range(world: World, kind: str, detail: dict[str, Any], row: int, s: int) -> None:
    """A fill lies inside its bar before slippage, unless the settings take a gap at its level."""
    bars, execution = world.bars, world.execution
    raw, price = detail["raw_price"], detail["price"]
    low, high = float(bars.low[row, s]), float(bars.high[row, s])
    slack = 1e-9 * high
    if execution.gap == "open":
        assert low - slack <= raw <= high + slack, (kind, detail)
    buys = SIGN[detail["direction"]] * (1 if kind in ("entry_filled", "add_filled") else -1)
    worse = (price - raw) * buys
    assert -slack <= worse <= raw * execution.slippage + execution.tick_size + slack, (kind, detail)


def _played(world: World) -> tuple[TriggerEngine, npt.NDArray[Any], Books]:
    """An engine driven bar by bar, its books held against it after every bar."""
    engine, script, books = world.engine(), Script(world.seed), Books(world)
    bars, trades = world.bars, []
    last: dict[str, float] = {}
    while not engine.done:
        t = engine.t
        step = engine.advance(t + 1)
        last |= {name: float(bars.close[t, s]) for s, name in enumerate(bars.symbols) if bars.present[t, s]}
        for event in step.events:
            detail = dict(event.detail)
            if event.kind in FILLS:
                _in_range(world, event.kind, detail, t, bars.symbols.index(str(event.symbol)))
            books.note(event.kind, str(event.symbol), t, detail)
        books.carry(t)
        _agree(engine, books, last, t)
        trades.append(step.trades)
        for event in script(engine, step):
            books.note(event.kind, str(event.symbol), t, dict(event.detail))
    return engine, np.concatenate(trades), books


def _agree(engine: TriggerEngine, books: Books, last: dict[str, float], t: int) -> None:
    port, state, symbols = engine.portfolio[0], engine.state, engine.bars.symbols
    assert port["cash"] == pytest.approx(books.cash, abs=1e-6)
    assert port["fees"] == pytest.approx(books.fees, abs=1e-6)
    assert engine.equity[t] == pytest.approx(books.value(last), abs=1e-6)
    assert port["orders"] == len(books.resting) == int(state["order"].sum())
    assert port["positions"] == len(books.open) == np.count_nonzero(state["direction"])
    for s, symbol in enumerate(symbols):
        held = books.open.get(symbol)
        assert state["quantity"][s] == pytest.approx(held.left if held else 0.0, abs=1e-9)
        assert (symbol in books.resting) == bool(state["order"][s])


@given(world=worlds())
@settings(max_examples=40)
def test_kernel_invariants_books_ranges_and_counts_hold_on_every_bar(world):
    engine, trades, _ = _played(world)
    marks = (
        engine.state["direction"]
        * engine.state["quantity"]
        * (engine.state["last_close"] - engine.state["entry_price"])
    )
    running = np.where(engine.state["direction"] != 0, marks - engine.state["costs"], 0.0)
    scaled = np.where(
        engine.state["direction"] != 0,
        engine.state["direction"]
        * (engine.state["scaled_value"] - engine.state["scaled_quantity"] * engine.state["entry_price"]),
        0.0,
    )
    total = 100_000.0 + trades["pnl"].sum() + running.sum() + scaled.sum()
    assert engine.equity[-1] == pytest.approx(total, abs=1e-6)


@given(world=worlds())
@settings(max_examples=40)
def test_kernel_invariants_every_trade_is_consistent(world):
    _, trades, books = _played(world)
    bars = world.bars
    for s, symbol in enumerate(bars.symbols):
        closed = trades[trades["s"] == s]
        held = books.closed[symbol]
        assert closed["fees"].tolist() == pytest.approx([holding.fees for holding in held], abs=1e-9)
        assert closed["quantity"].tolist() == pytest.approx([holding.bought for holding in held], abs=1e-9)
        assert (closed["exit_price"] * closed["quantity"]).tolist() == pytest.approx(
            [holding.proceeds for holding in held]
        )
    firsts = {s: iter(books.closed[symbol]) for s, symbol in enumerate(bars.symbols)}
    last_exit = dict.fromkeys(range(len(bars.symbols)), -1)
    for trade in trades:
        s, d = int(trade["s"]), int(trade["direction"])
        rows = slice(int(trade["entry_t"]), int(trade["exit_t"]) + 1)
        present = bars.present[rows, s]
        assert trade["signal_t"] <= trade["entry_t"] <= trade["exit_t"]
        assert trade["entry_t"] >= last_exit[s], "trades of a symbol never overlap"
        last_exit[s] = int(trade["exit_t"])
        assert trade["bars_held"] == np.count_nonzero(present) - 1
        assert trade["mae_r"] <= 0.0 <= trade["mfe_r"]
        gross = d * trade["quantity"] * (trade["exit_price"] - trade["entry_price"])
        assert trade["pnl"] == pytest.approx(gross - trade["fees"], abs=1e-6)
        first = next(firsts[s]).first
        risk = trade["pnl"] / (trade["r"] * first) if trade["r"] != 0.0 else 0.0
        seen = [*bars.high[rows, s][present], *bars.low[rows, s][present], trade["entry_price"]]
        seen.append(float(trade["exit_price"]))
        moves = [(price - trade["entry_price"]) * d for price in seen]
        if risk > 0.0 and world.execution.gap == "open":
            slack = 1e-6 + (bars.close[rows, s][present].max() * world.execution.slippage + 0.05) / risk
            assert trade["mfe_r"] <= max(moves) / risk + slack
            assert trade["mae_r"] >= min(moves) / risk - slack
