"""The mixin for strategies of freqtrade, its hooks called as the bot calls them.

freqtrade is no package of the tests: a base with its hooks and its wrapper stands in. `make doors-check` runs
the same with the real bot.
"""

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pandas as pd
import pytest

import thinktwice as tt
from tests.doors.brokers import LIMITS, fail, rows
from thinktwice.doors.freqtrade import GuardedOrders

ENTRY = {
    "pair": "BTC/USDT", "order_type": "limit", "amount": 10.0, "rate": 100.0, "time_in_force": "GTC",
    "current_time": None, "entry_tag": "breakout", "side": "long",
}  # fmt: skip
HELD = SimpleNamespace(pair="BTC/USDT", amount=10.0, open_rate=100.0, is_short=False, leverage=1.0)
EXIT = {
    "pair": "BTC/USDT", "trade": HELD, "order_type": "limit", "amount": 10.0, "rate": 90.0,
    "time_in_force": "GTC", "exit_reason": "stop_loss", "current_time": None,
}  # fmt: skip


class IStrategy:
    """freqtrade's own hooks: they confirm everything."""

    timeframe = "1h"

    def confirm_trade_entry(self, pair, order_type, amount, rate, time_in_force, current_time, entry_tag,
                            side, **kwargs):  # fmt: skip
        return True

    def confirm_trade_exit(self, pair, trade, order_type, amount, rate, time_in_force, exit_reason,
                           current_time, **kwargs):  # fmt: skip
        return True

    def adjust_trade_position(self, trade, current_time, current_rate, **kwargs):
        return None

    def leverage(self, pair, current_time, current_rate, proposed_leverage, max_leverage, entry_tag, side,
                 **kwargs):  # fmt: skip
        return 1.0


class Trend(GuardedOrders, IStrategy):
    stoploss = -0.05

    def confirm_trade_entry(self, pair, *args, **kwargs):
        return pair != "NO/USDT"


class Fast(Trend):
    def confirm_trade_entry(self, *args, **kwargs):
        return super().confirm_trade_entry(*args, **kwargs)

    def adjust_trade_position(self, trade, current_time, current_rate, **kwargs):
        return 500.0


class _Leveraged(Trend):
    def leverage(self, *args, **kwargs):
        return 10.0


class Faulty(Trend):
    """Has a fault in each hook."""

    confirm_trade_entry = confirm_trade_exit = adjust_trade_position = leverage = fail


def bars(pair, timeframe):
    dates = pd.date_range(
        end=pd.Timestamp.now("UTC").floor("h") - pd.Timedelta(hours=1), periods=60, freq="h"
    )
    prices = {"open": 100.0, "high": 101.0, "low": 99.0, "close": 100.0, "volume": 1.0, "rsi": 50.0}
    return pd.DataFrame({"date": dates, **prices}), None


def no_bars(pair, timeframe):
    frame, found = bars(pair, timeframe)
    return frame[:0], found


@pytest.fixture
def strategy(guard, monkeypatch):
    """Makes a strategy with the guard, whose bot holds one trade."""
    persistence = ModuleType("freqtrade.persistence")
    persistence.Trade = SimpleNamespace(get_trades_proxy=lambda is_open: [HELD])  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "freqtrade", ModuleType("freqtrade"))
    monkeypatch.setitem(sys.modules, "freqtrade.persistence", persistence)

    def make(kind=Trend, runmode="dry_run", bars=no_bars, guard=guard):
        made = kind()
        made.guard = guard
        made.dp = SimpleNamespace(runmode=SimpleNamespace(value=runmode), get_analyzed_dataframe=bars)
        made.wallets = SimpleNamespace(get_total_stake_amount=lambda: 100_000.0)
        return made

    return make


def is_sent(hook, given):
    """What the bot makes of a hook: `strategy_safe_wrapper(hook, default_retval=True)`."""
    try:
        return hook(**given)
    except Exception:  # noqa: BLE001 - freqtrade logs it and sends the order
        return True


def test_entry_that_passes_is_confirmed_with_the_stop_of_the_strategy(strategy, store):
    assert is_sent(strategy(bars=bars).confirm_trade_entry, {**ENTRY, "pair": "ETH/USDT"})
    [checked] = rows(store, "guard_verdict")
    order = checked["order"]
    assert (order["side"], order["stop"], order["strategy"]) == ("buy", 95.0, "Trend")
    assert checked["account"]["positions"] == {"BTC/USDT": {"quantity": 10.0, "price": 100.0}}
    assert checked["facts"]["close"] == 100.0
    assert [row["verdict_id"] for row in rows(store, "guard_spent")] == [checked["verdict"]["id"]]


def test_entry_over_a_limit_or_unwanted_by_the_strategy_is_not_confirmed(strategy, store):
    made = strategy()
    assert not is_sent(made.confirm_trade_entry, {**ENTRY, "pair": "ETH/USDT", "amount": 1_000.0})
    assert not is_sent(made.confirm_trade_entry, {**ENTRY, "pair": "NO/USDT"})
    assert len(rows(store, "guard_verdict")) == 1


def test_hook_that_calls_that_of_its_base_asks_the_guard_once(strategy, store):
    assert is_sent(strategy(Fast).confirm_trade_entry, {**ENTRY, "pair": "ETH/USDT"})
    assert len(rows(store, "guard_verdict")) == 1


@pytest.mark.parametrize("fault", ["the guard fails", "there is no guard", "there is no wallet"])
def test_fault_confirms_no_entry_though_the_bot_sends_where_a_hook_raises(
    strategy, guard, monkeypatch, fault
):
    made = strategy()
    if fault == "the guard fails":
        monkeypatch.setattr(guard, "check", fail)
    elif fault == "there is no guard":
        made.guard = None
    else:
        made.wallets = None
    assert not is_sent(made.confirm_trade_entry, {**ENTRY, "pair": "ETH/USDT"})


def test_exit_is_confirmed_whatever_holds_and_stands_in_the_journal(strategy, guard, store, monkeypatch):
    made = strategy(bars=fail)
    assert is_sent(made.confirm_trade_exit, EXIT)
    [checked] = rows(store, "guard_verdict")
    assert (checked["order"]["side"], checked["verdict"]["reduces"]) == ("sell", True)
    assert [row["verdict_id"] for row in rows(store, "guard_spent")] == [checked["verdict"]["id"]]
    monkeypatch.setattr(guard, "check", fail)
    assert is_sent(made.confirm_trade_exit, EXIT)


GIVEN: dict[str, Any] = {
    "confirm_trade_entry": ENTRY,
    "confirm_trade_exit": EXIT,
    "adjust_trade_position": {"trade": HELD, "current_time": None, "current_rate": 110.0},
    "leverage": {"pair": "ETH/USDT"},
}  # fmt: skip


@pytest.mark.parametrize(
    ("mode", "answers"), [("enforce", [False, True, None, 1.0]), ("shadow", [True, True, None, 1.0])]
)
def test_fault_in_a_hook_of_the_strategy_sends_no_entry_and_every_exit(strategy, store, mode, answers):
    with tt.guard(LIMITS, store=f"sqlite:///{store}", mode=mode) as guard:
        made = strategy(Faulty, guard=guard)
        assert [getattr(made, name)(**given) for name, given in GIVEN.items()] == answers
        with pytest.raises(RuntimeError):
            strategy(Faulty, runmode="backtest", guard=guard).confirm_trade_entry(**ENTRY)


def test_fault_of_what_the_bot_gives_sends_no_entry_and_every_exit(strategy):
    class Broken(Trend):
        dp = property(fail, lambda self, value: None)
        guard = property(fail, lambda self, value: None)

    made = strategy(Broken)
    assert [made.confirm_trade_entry(**ENTRY), made.confirm_trade_exit(**EXIT)] == [False, True]
    assert not strategy().confirm_trade_entry(), "no argument of the hook is there"


def test_stop_of_an_entry_with_leverage_is_a_share_of_its_stake(strategy, store):
    made = strategy(_Leveraged)
    made.leverage(pair="ETH/USDT", max_leverage=5.0)
    given = {**ENTRY, "pair": "ETH/USDT", "entry_tag": 3}
    assert is_sent(made.confirm_trade_entry, given)
    [checked] = rows(store, "guard_verdict")
    order = checked["order"]
    assert (order["stop"], order["strategy"], order["reasons"]) == (99.0, "Leveraged", "3")


def test_addition_is_made_to_a_trade_that_wins_and_not_to_one_that_loses(strategy):
    made = strategy(Fast)
    given = {"trade": HELD, "current_time": None}
    assert made.adjust_trade_position(**given, current_rate=90.0) is None
    assert made.adjust_trade_position(**given, current_rate=110.0) == 500.0


def test_backtest_of_freqtrade_asks_nobody(strategy, store):
    assert is_sent(strategy(runmode="backtest").confirm_trade_entry, {**ENTRY, "amount": 1_000.0})
    assert rows(store, "guard_verdict") == []
