"""An account at or below zero at a close: one event says so, and the engine validates nothing after it."""

from typing import Any

import numpy as np
import pytest

from tests.each_case import check_each
from tests.trading_core.engine_bench import FLAT, WIDE, Play, engine_on, install, kinds, play, run_all
from tests.trading_core.market import series
from trading_core.accounting import drawdowns, max_drawdown

# 2,000 risked over a stop 0.5 away are 4,000 units of 100: 400,000 for an account of 100,000.
LEVERED: dict[str, Any] = {"stop": 99.5, "target": 150.0, "risk_fraction": 0.02}
LATER: dict[str, Any] = {"entry_bar_exits": False}
QUIET = (100.0, 100.4, 99.6, 100.0)
BACK = [(100.0, 101.0, 99.0, 100.0)] * 3
BOTH_SIDES = check_each("direction", [1, -1], ids=["long", "short"])

# The bars from that of the entry on, and how the order meets them; each leaves nothing at its last close.
GONE = {
    "a gap beyond the stop": ([FLAT, QUIET, (74, 75, 73, 74)], {}),
    "a close of exactly nothing": ([FLAT, (100, 100.4, 74.9, 75)], LATER),
    "the fees of a fill": ([FLAT, QUIET], {"fee_per_trade": 100_001.0}),
    "the fees of an exit": ([FLAT, QUIET, (99, 99.2, 98, 98)], {"fee_per_trade": 60_000.0}),
    "slippage": ([FLAT, QUIET, (77, 77.2, 76, 76)], {"slippage_bps": 400.0}),
    "carry": ([FLAT, (100, 100.4, 75.3, 75.5)], {**LATER, "funding_bps": 100.0, "borrow_bps": 100.0}),
}


def played(name: str, direction: int, later: Any = BACK) -> Play:
    rows, execution = GONE[name]
    if direction < 0 and "borrow_bps" in execution:  # a short would receive the funding
        execution = {**execution, "funding_bps": 0.0}
    return play([*rows, *later], direction, execution=execution, **LEVERED)


def breaches(done: Play) -> list[str]:
    return [detail["limit"] for detail in done.details("envelope_breach")]


@BOTH_SIDES
@check_each("name", GONE)
def test_kernel_account_that_is_gone_ends_the_engine_at_that_close(name, direction):
    done = played(name, direction)
    engine, row = done.engine, 1 + len(GONE[name][0])
    assert breaches(done)[-1] == "account_gone"
    assert breaches(done).count("account_gone") == 1
    assert (engine.t, engine.done, engine.account_gone) == (row + 1, True, True)
    assert engine.equity[row] <= 0.0 < engine.equity[row - 1]
    assert np.isnan(engine.equity[row + 1 :]).all(), "what comes back afterwards is not this account's"
    assert done.steps[-1].boundaries == (), "there is nothing left to decide about"
    assert kinds(done.steps)[-1] == "envelope_breach"


@BOTH_SIDES
@check_each("name", GONE)
def test_kernel_account_that_is_gone_is_so_bar_by_bar_and_in_one_block(name, direction):
    """Cash and positions are conserved to the last bar, whatever the blocks."""
    whole = played(name, direction)
    cut = played(name, direction, later=[])
    assert whole.engine.state.tobytes() == cut.engine.state.tobytes()
    assert whole.engine.portfolio.tobytes() == cut.engine.portfolio.tobytes()
    state, port = whole.engine.state[0], whole.engine.portfolio[0]
    held = state["direction"] * state["quantity"] * state["last_close"]
    assert port["equity"] == pytest.approx(port["cash"] + held)


@BOTH_SIDES
def test_kernel_account_with_something_left_goes_on(direction):
    done = play([FLAT, (100, 100.4, 74.9, 75.01), *BACK], direction, execution=LATER, **LEVERED)
    assert "account_gone" not in breaches(done)
    assert not done.engine.account_gone
    assert done.engine.t == done.engine.bars.shape[0]


def test_kernel_without_limits_has_no_account_to_lose():
    """A shadow ledger trades on paper whatever its sum is."""
    rows = [FLAT, FLAT, FLAT, QUIET, (74, 75, 73, 74), *BACK]
    engine = engine_on(series(rows), envelope=WIDE)
    engine.parameters["limited"] = 0
    install(engine, setup=[1], activation=[2], **LEVERED)
    run_all(engine)
    assert engine.equity[-1] <= 0.0
    assert (engine.t, engine.account_gone) == (len(rows), False)


@pytest.mark.parametrize("lowest", [0.0, -1.0, -1e9])
def test_drawdown_of_an_account_that_is_gone_is_the_whole_of_it(lowest):
    equity = np.array([100.0, 120.0, 60.0, lowest])
    assert drawdowns(equity).tolist() == [0.0, 0.0, 0.5, 1.0]
    assert max_drawdown(equity) == 1.0
