"""The guard in a strategy of freqtrade: `class Mine(GuardedOrders, IStrategy): guard = tt.guard(...)`.

freqtrade sends an order where a hook fails, so nothing here may raise: what fails refuses an entry in mode
`enforce`. Exits are journalled and go on, whatever the verdict. Backtests and hyperopt ask nobody.
"""

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import wraps
from typing import Any

from schemas.errors import OrderRefused
from thinktwice.doors.admission import Admission

LOG = logging.getLogger(__name__)
SENT: dict[str, Any] = {"leverage": 1.0, "confirm_trade_exit": True}  # whatever fails
REFUSED: dict[str, Any] = {"confirm_trade_entry": False, "adjust_trade_position": None}


class GuardedOrders:
    """Asks the attribute `guard` after the strategy's own hooks; the stop is that of `stoploss`."""

    guard: Any = None
    _inside = False
    _leverages: dict[str, float]

    def __init_subclass__(cls, **given: Any) -> None:
        super().__init_subclass__(**given)
        cls._leverages = {}  # of entries to come, by pair
        for name in (*SENT, *REFUSED):
            if not hasattr(own := getattr(cls, name), "guards"):
                setattr(cls, name, _guard_hook(own, name))


def _guard_hook(own: Callable[..., Any], name: str) -> Callable[..., Any]:
    @wraps(own)
    def hook(self: Any, *args: Any, **given: Any) -> Any:
        inside, self._inside = self._inside, True  # a base's hook, called by super(), asks no second time
        trades, answer = True, SENT.get(name, True if name == "confirm_trade_entry" else None)
        try:
            mode = getattr(getattr(self, "dp", None), "runmode", None)
            trades = getattr(mode, "value", "live") in ("live", "dry_run")
            answer = own(self, *args, **given)
            if answer and trades and not inside:
                _ask(self, name, answer, given)
        except Exception as error:
            if inside or not trades:
                raise
            LOG.warning("%s: %s", own.__qualname__, error, exc_info=not isinstance(error, OrderRefused))
            sends = name in SENT
            with suppress(Exception):
                sends = sends or self.guard.mode == "shadow"
            return answer if sends else REFUSED[name]
        finally:
            self._inside = inside
        return answer

    hook.guards = True  # type: ignore[attr-defined]
    return hook


def _ask(self: Any, hook: str, answer: Any, given: Mapping[str, Any]) -> None:
    """Raises where the guard refuses an order, or cannot check it."""
    if hook == "leverage":
        self._leverages[given["pair"]] = min(max(answer, 1.0), given["max_leverage"])
        return
    from freqtrade.persistence import Trade

    trade, exits = given.get("trade"), hook == "confirm_trade_exit"
    pair, short = (given["pair"], given["side"] == "short") if trade is None else (trade.pair, trade.is_short)
    times = self._leverages.pop(pair, 1.0) if trade is None else trade.leverage or 1.0
    stake = answer[0] if isinstance(answer, tuple) else answer
    if hook == "adjust_trade_position" and (stake or 0.0) <= 0:
        return
    rate = given["rate"] if "rate" in given else given["current_rate"]
    size = {"quantity": given["amount"]} if "amount" in given else {"notional": stake * times}
    order = {
        "symbol": pair, "side": "sell" if short != exits else "buy", **size, "price": rate,
        "kind": "market" if given.get("order_type") == "market" else "limit",
        "stop": None if exits else rate * (1 + (-1 if short else 1) * self.stoploss / times),
        "strategy": "".join(sign for sign in type(self).__name__ if sign.isascii()).lstrip("_") or "agent",
        "reasons": str(given.get("entry_tag") or given.get("exit_reason") or ""),
    }  # fmt: skip
    held = {
        open.pair: {"quantity": open.amount * (-1 if open.is_short else 1), "price": open.open_rate}
        for open in Trade.get_trades_proxy(is_open=True) if open.amount
    }  # fmt: skip

    def bars_of(symbol: str) -> Any:
        frame, _ = self.dp.get_analyzed_dataframe(symbol, self.timeframe)
        return frame.set_index("date")[["open", "high", "low", "close", "volume"]] if len(frame) else None

    account = {"equity": self.wallets.get_total_stake_amount(), "positions": held}
    Admission(self.guard, bars=bars_of).admit(order, account=account)
