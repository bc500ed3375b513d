"""A strategy of freqtrade before an exchange that counts; run by `tools.try_doors` beside an installed wheel.

The bot is freqtrade's own, with its own order of hooks and its own wrapper, which sends an order where a hook
raises; only the exchange, the wallets and the data are made up.
"""

import logging
import runpy
import sqlite3
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pandas as pd
from freqtrade.enums import ExitCheckTuple, ExitType, RunMode, State, TradingMode
from freqtrade.freqtradebot import FreqtradeBot
from freqtrade.persistence import Trade, init_db
from freqtrade.strategy import IStrategy

import thinktwice as tt
from thinktwice.doors.freqtrade import GuardedOrders

LIMITS = {"limits": {"max_notional": 10_000.0, "max_share_of_equity": None}}
sent: list[tuple[str, float]] = []


class Sent(Exception):
    """Ends the bot's own function where the exchange took the order."""


class Exchange:
    rate = 100.0

    def get_rates(self, *given: Any) -> tuple[float, float]:
        return self.rate, self.rate

    def get_min_pair_stake_amount(self, *given: Any) -> float:
        return 1.0

    def get_max_pair_stake_amount(self, *given: Any) -> float:
        return 1_000_000.0

    def get_funding_fees(self, **given: Any) -> float:
        return 0.0

    def create_order(self, **order: Any) -> None:
        sent.append((order["side"], order["amount"]))
        raise Sent


class Data:
    runmode = RunMode.DRY_RUN

    def get_analyzed_dataframe(self, pair: str, timeframe: str) -> Any:
        end = pd.Timestamp.now("UTC").floor("h") - pd.Timedelta(hours=1)
        dates = pd.date_range(end=end, periods=60, freq="h")
        frame = pd.DataFrame({"date": dates, "open": 100.0, "high": 101.0, "low": 99.0, "close": 100.0})
        return frame.assign(volume=1_000.0, rsi=50.0), datetime.now(UTC)


class Wallets:
    def get_total_stake_amount(self) -> float:
        return 100_000.0

    def get_available_stake_amount(self) -> float:
        return 100_000.0


class Trend(GuardedOrders, IStrategy):  # type: ignore[misc] # freqtrade is no package of the checkout
    timeframe = "1h"
    stoploss = -0.05
    wanted = True

    def populate_indicators(self, dataframe: Any, metadata: Any) -> Any:
        return dataframe

    def confirm_trade_entry(self, pair: str, *args: Any, **given: Any) -> bool:
        return self.wanted


class Quiet(Trend):
    """Calls the hook of its base, which is guarded, too."""

    def confirm_trade_entry(self, *args: Any, **given: Any) -> bool:
        return super().confirm_trade_entry(*args, **given)


class Adding(Trend):
    """Adds to what it holds."""

    def adjust_trade_position(self, trade: Any, *args: Any, **given: Any) -> Any:
        return 500.0, "add"


def bot_of(guard: Any, kind: Any = Trend) -> Any:
    strategy = kind({"stake_currency": "USDT"})
    strategy.guard, strategy.dp, strategy.wallets = guard, Data(), Wallets()
    strategy.order_types = {"entry": "limit", "exit": "limit"}
    strategy.order_time_in_force = {"entry": "GTC", "exit": "GTC"}
    bot = FreqtradeBot.__new__(FreqtradeBot)
    bot.strategy, bot.exchange, bot.wallets = strategy, Exchange(), strategy.wallets
    bot._safe_exit_amount = lambda trade, pair, amount: amount
    bot.cancel_stoploss_on_exchange = lambda trade, **given: trade
    bot.trading_mode, bot.config, bot.state = TradingMode.SPOT, {}, State.RUNNING
    bot.get_valid_enter_price_and_stake = lambda pair, price, stake, *more: (100.0, stake, 1.0)
    return bot


def enter(bot: Any, stake: float) -> bool:
    """Whether the order reached the exchange."""
    try:
        return bool(bot.execute_entry("BTC/USDT", stake))
    except Sent:
        return True


def leave(bot: Any, trade: Any) -> bool:
    """Whether the exit reached the exchange."""
    try:
        return bool(bot.execute_trade_exit(trade, 100.0, ExitCheckTuple(exit_type=ExitType.EXIT_SIGNAL)))
    except Sent:
        return True


def held_trade() -> Any:
    trade = Trade(
        pair="BTC/USDT", stake_amount=1_000.0, amount=10.0, open_rate=100.0, open_date=datetime.now(UTC),
        fee_open=0.0, fee_close=0.0, exchange="made up", is_open=True, leverage=1.0, is_short=False,
    )  # fmt: skip
    Trade.session.add(trade)
    Trade.commit()
    return trade


def entry_that_passes_is_sent_and_a_larger_one_is_not(guard: Any) -> None:
    bot = bot_of(guard)
    assert not enter(bot, 50_000.0)
    assert enter(bot, 1_000.0)
    assert sent == [("buy", 10.0)], sent


def entry_that_the_strategy_does_not_want_asks_nobody(guard: Any) -> None:
    bot = bot_of(guard)
    bot.strategy.wanted = False
    assert not enter(bot, 1_000.0)


def hook_that_calls_the_guarded_hook_of_its_base_asks_once(guard: Any) -> None:
    assert enter(bot_of(guard, Quiet), 1_000.0)


def fault_lets_no_entry_leave_though_freqtrade_sends_where_a_hook_raises(guard: Any) -> None:
    guard.check = fail
    assert not enter(bot_of(guard), 1_000.0)
    bot = bot_of(None)
    assert not enter(bot, 1_000.0)


def fault_of_the_strategy_lets_no_entry_leave_and_every_exit(guard: Any) -> None:
    class Faulty(Trend):
        confirm_trade_entry = confirm_trade_exit = fail

    bot = bot_of(guard, Faulty)
    assert not enter(bot, 1_000.0)
    assert leave(bot, held_trade())


def exit_is_sent_whatever_the_guard_says(guard: Any) -> None:
    trade = held_trade()
    bot = bot_of(guard)
    assert leave(bot, trade)
    guard.check = fail
    assert leave(bot, trade)


def addition_is_sent_to_a_trade_that_wins_and_not_to_one_that_loses(guard: Any) -> None:
    bot, trade = bot_of(guard, Adding), held_trade()
    for rate, there in ((99.0, []), (102.0, [("buy", 5.0)])):
        bot.exchange.rate = rate
        with suppress(Sent):
            bot.check_and_call_adjust_trade_position(trade)
        assert sent == there, (rate, sent)


def strategy_of_the_page_sends_what_passes_and_nothing_else(guard: Any) -> None:
    strategy = runpy.run_path("page.py")["Trend"]
    strategy.guard.close()
    bot = bot_of(guard, strategy)
    assert not enter(bot, 50_000.0)
    assert enter(bot, 1_000.0)


def fail(*args: Any, **given: Any) -> Any:
    raise RuntimeError("the guard has a fault")


def main() -> None:
    logging.basicConfig(level=logging.ERROR)
    init_db("sqlite://")
    scenarios = (
        entry_that_passes_is_sent_and_a_larger_one_is_not,
        entry_that_the_strategy_does_not_want_asks_nobody,
        hook_that_calls_the_guarded_hook_of_its_base_asks_once,
        fault_lets_no_entry_leave_though_freqtrade_sends_where_a_hook_raises,
        fault_of_the_strategy_lets_no_entry_leave_and_every_exit,
        exit_is_sent_whatever_the_guard_says,
        addition_is_sent_to_a_trade_that_wins_and_not_to_one_that_loses,
        strategy_of_the_page_sends_what_passes_and_nothing_else,
    )
    for number, scenario in enumerate(scenarios):
        sent.clear()
        store = f"freqtrade_{number}.sqlite"
        with tt.guard(LIMITS, store=f"sqlite:///{store}", mode="enforce") as guard:
            scenario(guard)
        with sqlite3.connect(store) as opened:
            kinds = [kind for (kind,) in opened.execute("select kind from journal order by seq")]
        print(scenario.__name__, ":", *kinds[1:])


if __name__ == "__main__":
    main()
