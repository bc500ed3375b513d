"""The guard in a strategy of freqtrade: `class Mine(GuardedOrders, IStrategy): guard = tt.guard(...)`.

freqtrade sends an order where a hook fails, so none of these may raise: what fails refuses an entry in mode
`enforce`. Exits are journalled and go on, whatever the verdict. Backtests and hyperopt ask nobody.
"""

import logging
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from thinktwice.doors.admission import Admission

LOG = logging.getLogger(__name__)
BARS = ["open", "high", "low", "close", "volume"]


class GuardedOrders:
    """Asks the attribute `guard` after the strategy's own hooks; the stop is that of `stoploss`."""

    guard: Any = None
    _inside = False

    def __init_subclass__(cls, **given: Any) -> None:
        super().__init_subclass__(**given)
        for name, decide in HOOKS.items():
            own: Any = getattr(cls, name)
            if not hasattr(own, "decide"):
                setattr(cls, name, _guarded(own, decide))


def _guarded(own: Callable[..., Any], decide: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(own)
    def hook(self: Any, *args: Any, **given: Any) -> Any:
        inside, self._inside = self._inside, True  # a base's hook, called by super(), asks no second time
        try:
            answer = own(self, *args, **given)
        finally:
            self._inside = inside
        mode = getattr(getattr(self.dp, "runmode", None), "value", "live")
        asks = bool(answer) and not inside and mode in ("live", "dry_run")
        return decide(self, answer, given) if asks else answer

    hook.decide = decide  # type: ignore[attr-defined]
    return hook


def _enter(self: Any, answer: Any, given: Mapping[str, Any]) -> Any:
    sign = -1 if given["side"] == "short" else 1
    size = {"quantity": given["amount"], "stop": given["rate"] * (1 + sign * self.stoploss)}
    return _is_passed(self, given["pair"], sign, given, **size, reasons=given["entry_tag"] or "")


def _exit(self: Any, answer: Any, given: Mapping[str, Any]) -> Any:
    sign = 1 if given["trade"].is_short else -1
    _is_passed(self, given["pair"], sign, given, quantity=given["amount"], reasons=given["exit_reason"])
    return answer


def _adjust(self: Any, answer: Any, given: Mapping[str, Any]) -> Any:
    stake, trade = answer[0] if isinstance(answer, tuple) else answer, given["trade"]
    sign, rate = -1 if trade.is_short else 1, given["current_rate"]
    order = {"notional": (stake or 0) * (trade.leverage or 1), "stop": rate * (1 + sign * self.stoploss)}
    adds = (stake or 0) > 0
    return answer if not adds or _is_passed(self, trade.pair, sign, {"rate": rate}, **order) else None


HOOKS = {"confirm_trade_entry": _enter, "confirm_trade_exit": _exit, "adjust_trade_position": _adjust}


def _is_passed(self: Any, pair: str, sign: int, given: Mapping[str, Any], **order: Any) -> bool:
    """Whether an order may be sent; one that cannot be checked may not."""
    kind = "market" if given.get("order_type") == "market" else "limit"
    order |= {"symbol": pair, "side": "buy" if sign > 0 else "sell", "kind": kind, "price": given["rate"]}
    door = Admission(self.guard, bars=lambda symbol: _bars(self, symbol))
    try:
        door.admit({**order, "strategy": type(self).__name__}, account=_account(self))
    except Exception as error:  # noqa: BLE001 - raised, it would let the order through
        LOG.warning("the guard refuses an order of %s: %s", pair, error)
        return getattr(self.guard, "mode", "enforce") == "shadow"
    return True


def _bars(self: Any, pair: str) -> Any:
    frame, _ = self.dp.get_analyzed_dataframe(pair, self.timeframe)
    return frame.set_index("date")[BARS] if len(frame) else None


def _account(self: Any) -> dict[str, Any]:
    from freqtrade.persistence import Trade

    held = {
        trade.pair: {"quantity": -trade.amount if trade.is_short else trade.amount, "price": trade.open_rate}
        for trade in Trade.get_trades_proxy(is_open=True)
        if trade.amount
    }
    return {"equity": self.wallets.get_total_stake_amount(), "positions": held}
