"""Tick validation of random worlds: any split into blocks, books, snapshots, and bars still to come."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.settings import EnvelopeSettings, ExecutionSettings
from schemas.vocabulary import PolicyState
from tests.trading_core.engine_bench import engine_on, install
from tests.trading_core.market import random_series
from trading_core.kernel.state_machine import TRANSITIONS


def _random_policies(seed, rows):
    rng = np.random.default_rng(seed)
    picked = {
        role: np.flatnonzero(rng.random(rows) < share).tolist()
        for role, share in (("setup", 0.2), ("invalidation", 0.03))
    }
    return {
        **picked,
        "activation": np.flatnonzero(rng.random(rows) < 0.4).tolist() if rng.random() < 0.7 else None,
    }


def _busy_engine(seed: int, symbols: int = 3, rows: int = 120):
    bars = random_series(seed, rows, symbols, missing=0.1, timeframe="4h")
    rng = np.random.default_rng(seed + 1)
    flags = (rng.random(bars.shape) < 0.03) * rng.integers(1, 8, bars.shape)
    engine = engine_on(
        bars, flags=flags, heartbeat=7, execution=ExecutionSettings(),
        envelope=EnvelopeSettings(
            max_daily_loss=0.01, max_drawdown=0.03, drawdown_release_bars=6, recovery_bars=10
        ),
    )  # fmt: skip
    return engine, bars


def _drive(engine, bars, seed: int, block: int | None):
    """Every boundary installs a fresh policy on flat symbols; blocks only cut the validation."""
    trades, events = [], []
    while not engine.done:
        step = engine.advance(None if block is None else engine.t + block)
        events += [event.payload() for event in step.events]
        trades.append(step.trades)
        for boundary in step.boundaries:
            if engine.state["direction"][boundary.s] != 0:
                continue
            name = f"{boundary.s} {boundary.t}"
            d = 1 if (boundary.t + boundary.s) % 2 else -1
            close = bars.close[:, boundary.s]
            rules = _random_policies(seed + boundary.t, bars.shape[0])
            stop, target = close * (1 - d * 0.01), close * (1 + d * 0.015)
            events += [
                e.payload()
                for e in install(
                    engine, s=boundary.s, direction=d, stop=stop, target=target, horizon=9, name=name, **rules
                )
            ]
            engine.mark_evaluated(boundary.s)
    return events, np.concatenate(trades)


@given(seed=st.integers(0, 500), block=st.integers(1, 9))
@settings(max_examples=25)
def test_trigger_engine_tick_validation_any_block_split_gives_identical_events_and_state(
    seed: int, block: int
) -> None:
    whole, bars = _busy_engine(seed)
    cut, _ = _busy_engine(seed)
    events, trades = _drive(whole, bars, seed, None)
    cut_events, cut_trades = _drive(cut, bars, seed, block)
    assert events == cut_events
    assert trades.tobytes() == cut_trades.tobytes()
    assert whole.state.tobytes() == cut.state.tobytes()
    assert whole.equity.tobytes() == cut.equity.tobytes()


@given(seed=st.integers(0, 500))
@settings(max_examples=25)
def test_trigger_engine_tick_validation_cash_quantity_and_transitions_are_conserved(seed: int) -> None:
    engine, bars = _busy_engine(seed)
    events, trades = _drive(engine, bars, seed, None)
    moves = [
        (PolicyState(e["detail"]["from"]), PolicyState(e["detail"]["to"]))
        for e in events
        if e["kind"] == "state_transition"
    ]
    assert set(moves) <= set(TRANSITIONS)
    entries = [e for e in events if e["kind"] == "entry_filled"]
    exits = [e for e in events if e["kind"] == "exit_filled"]
    still_open = int((engine.state["direction"] != 0).sum())
    assert len(entries) == len(exits) + still_open
    assert len(trades) == len(exits)
    held = {e["detail"]["order_id"]: e["detail"]["quantity"] for e in entries}
    assert all(held[e["detail"]["entry_order_id"]] == e["detail"]["quantity"] for e in exits)
    state = engine.state
    marks = float((state["direction"] * state["quantity"] * state["last_close"]).sum())
    open_cost = float(
        (
            state["direction"] * state["quantity"] * state["entry_price"]
            + np.where(state["direction"] != 0, state["costs"], 0.0)
        ).sum()
    )
    assert float(engine.portfolio["cash"][0]) == pytest.approx(
        100_000 + trades["pnl"].sum() - open_cost, abs=1e-6
    )
    assert float(engine.portfolio["equity"][0]) == pytest.approx(
        float(engine.portfolio["cash"][0]) + marks, abs=1e-6
    )
    assert float(engine.gross.max()) <= 1.5 * float(engine.equity.max())


@given(seed=st.integers(0, 500))
@settings(max_examples=20)
def test_trigger_engine_tick_validation_books_balance_on_every_bar(seed: int) -> None:
    engine, bars = _busy_engine(seed)
    cash, held = 100_000.0, dict.fromkeys(bars.symbols, 0.0)
    last = dict.fromkeys(bars.symbols, 0.0)
    accepted = filled = refused = 0

    def book(events):
        nonlocal cash, accepted, filled, refused
        for event in events:
            detail = event.detail
            sign = {"long": 1.0, "short": -1.0}.get(detail.get("direction"), 0.0)
            if event.kind == "entry_filled":
                cash -= sign * detail["quantity"] * detail["price"] + detail["fee"]
                held[event.symbol] += sign * detail["quantity"]
                filled += 1
            elif event.kind == "exit_filled":
                cash += sign * detail["quantity"] * detail["price"] - detail["fee"]
                held[event.symbol] -= sign * detail["quantity"]
            accepted += event.kind == "order_accepted"
            refused += event.kind == "order_refused" and detail["reason"] in ("envelope", "retired")

    while not engine.done:
        step = engine.advance(engine.t + 1)
        t = engine.t - 1
        book(step.events)
        last |= {name: bars.close[t, s] for s, name in enumerate(bars.symbols) if bars.present[t, s]}
        assert engine.portfolio["cash"][0] == pytest.approx(cash, abs=1e-6)
        assert engine.equity[t] == pytest.approx(
            cash + sum(held[name] * last[name] for name in held), abs=1e-6
        )
        for boundary in step.boundaries:
            if engine.state["direction"][boundary.s] == 0:
                close = bars.close[:, boundary.s]
                rules = _random_policies(seed + t, bars.shape[0])
                name = f"{boundary.s} {t}"
                book(
                    install(engine, s=boundary.s, stop=close * 0.99, target=close * 1.015, name=name, **rules)
                )
        resting = int(engine.state["order"].sum())
        assert accepted == filled + refused + resting


def test_trigger_engine_tick_validation_snapshot_and_restore_give_the_same_future() -> None:
    engine, bars = _busy_engine(7)
    twin, _ = _busy_engine(7)
    first = engine.advance(40)
    assert first.bars_validated > 0
    saved = engine.snapshot()
    twin.restore(saved)
    events, trades = _drive(engine, bars, 7, None)
    again, same = _drive(twin, bars, 7, None)
    assert events == again
    assert trades.tobytes() == same.tobytes()


def test_trigger_engine_tick_validation_future_bars_leave_past_events_alone() -> None:
    engine, bars = _busy_engine(9)
    events, _ = _drive(engine, bars, 9, None)
    changed, future = _busy_engine(9)
    for part in (future.open, future.high, future.low, future.close):
        part[80:] *= 1.3
    later, _ = _drive(changed, future, 9, None)
    end = int(bars.close_times[79])
    assert [e for e in events if e["known_at"] <= end] == [e for e in later if e["known_at"] <= end]
    assert events != later
