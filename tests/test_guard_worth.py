"""`guard.worth` as a stranger uses it: refused orders go on on paper, sent ones as they were settled."""

import numpy as np
import pandas as pd
import pytest

import thinktwice as tt

HOUR = 3_600_000_000_000
START = 1_600_000_000_000_000_000 // HOUR * HOUR
FREE = {
    "execution": {"fee_bps": 0.0, "slippage_bps": 0.0, "spread_bps": 0.0},
    "limits": {"max_notional": 500.0},
}
ORDER = {"symbol": "UP", "side": "buy", "quantity": 10.0, "stop": 98.0, "target": 104.0, "horizon_bars": 5}


def frame(count):
    """Bars that stay about 100 and rise by 2 an hour from the 60th on."""
    draw = np.random.default_rng(1)
    close = 100.0 + 0.2 * draw.standard_normal(count) + 2.0 * np.maximum(0, np.arange(count) - 60)
    opened = np.concatenate([[100.0], close[:-1]])
    high, low = np.maximum(opened, close) + 0.3, np.minimum(opened, close) - 0.3
    index = pd.to_datetime([START + HOUR * row for row in range(count)], utc=True)
    return pd.DataFrame({"open": opened, "high": high, "low": low, "close": close, "volume": 1.0}, index)


@pytest.fixture
def address(tmp_path):
    return f"sqlite:///{tmp_path}/guard.sqlite"


def opened(address, row, mode="enforce"):
    return tt.guard(FREE, store=address, mode=mode, clock=lambda: START + HOUR * row)


def test_refused_order_goes_on_over_bars_of_later_checks_and_is_kept(address):
    with opened(address, 60) as guard:
        refused = guard.check(ORDER, bars=frame(60))
        assert refused.status != "pass"
        assert guard.worth()["not_counted"] == {"no_bars_yet": 1}
    with opened(address, 70) as guard:
        guard.check(ORDER, quantity=1.0, bars=frame(70))
        assert guard.worth()["refused"] == 1
    with opened(address, 71) as guard:
        found = guard.worth()
        (shadow,) = guard.trades().to_dict("records")
    assert (found["answer"], found["refused"], found["passed"]) == ("unknown", 1, 0)
    assert (shadow["order"], shadow["outcome"]) == (refused.id, "shadow")
    assert shadow["r"] > 1.0


def test_bars_that_close_after_now_do_not_count(address):
    with opened(address, 60) as guard:
        guard.check(ORDER, bars=frame(60))
        assert guard.worth(bars=frame(90))["not_counted"] == {"no_bars_yet": 1}


def test_shadow_mode_counts_what_was_settled_on_both_sides(address):
    with opened(address, 60, mode="shadow") as guard:
        refused, passed = (guard.check(ORDER, price=100.0, **given) for given in ({}, {"quantity": 1.0}))
        guard.settle([{"client_order_id": refused.id, "r": -1.0}, {"client_order_id": passed.id, "r": 2.0}])
        found = guard.worth()
    assert (found["refused"], found["passed"]) == (1, 1)


def test_frame_without_symbols_for_refused_orders_of_two_is_refused(address):
    with opened(address, 60) as guard:
        for symbol in ("UP", "DOWN"):
            assert not guard.check(ORDER, symbol=symbol, price=100.0)
        with pytest.raises(tt.DataError, match="give a dict of bars by symbol"):
            guard.worth(bars=frame(70))
        assert guard.worth(bars={"UP": frame(59)})["not_counted"] == {"no_bars_yet": 2}
    named = pd.concat(
        [frame(70).assign(symbol=name).rename_axis("time").reset_index() for name in ("DOWN", "UP")]
    )
    with opened(address, 70) as guard:
        assert guard.worth(bars=named)["refused"] == 2
