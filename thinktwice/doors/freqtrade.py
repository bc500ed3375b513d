"""The guard in a strategy of freqtrade: `class Mine(GuardedOrders, IStrategy): guard = tt.guard(...)`.

freqtrade sends an order where a hook fails, so nothing here may raise: what fails refuses an entry in mode
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
                setattr(cls, name, _guard_hook(own, decide))


def _guard_hook(own: Callable[..., Any], decide: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(own)
    def hook(self: Any, *args: Any, **given: Any) -> Any:
        inside, self._inside = self._inside, True  # a base's hook, called by super(), asks no second time
        try:
            answer = own(self, *args, **given)
        finally:
            self._inside = inside
        trading = getattr(getattr(self.dp, "runmode", None), "value", "live") in ("live", "dry_run")
        return decide(self, answer, given) if answer and trading and not inside else answer

    hook.decide = decide  # type: ignore[attr-defined]
    return hook


def _enter(self: Any, answer: Any, given: Mapping[str, Any]) -> Any:
    size = {"quantity": given["amount"], "reasons": given["entry_tag"] or ""}
    return _is_passed(self, given["pair"], given["side"] == "short", given["rate"], given, **size)


def _adjust(self: Any, answer: Any, given: Mapping[str, Any]) -> Any:
    stake, trade = (answer[0] if isinstance(answer, tuple) else answer) or 0.0, given["trade"]
    size = {"notional": stake * (trade.leverage or 1.0)}
    rate = given["current_rate"]
    return answer if stake <= 0 or _is_passed(self, trade.pair, trade.is_short, rate, given, **size) else None


def _exit(self: Any, answer: Any, given: Mapping[str, Any]) -> Any:
    size = {"quantity": given["amount"], "reasons": given["exit_reason"], "stop": None}
    _is_passed(self, given["pair"], not given["trade"].is_short, given["rate"], given, **size)
    return answer


HOOKS = {"confirm_trade_entry": _enter, "confirm_trade_exit": _exit, "adjust_trade_position": _adjust}


def _is_passed(self: Any, pair: str, sells: bool, rate: float, given: Mapping[str, Any], **size: Any) -> bool:
    """Whether an order may be sent; one that cannot be checked may not."""
    try:
        from freqtrade.persistence import Trade

        frame, _ = self.dp.get_analyzed_dataframe(pair, self.timeframe)
        bars = frame.set_index("date")[BARS] if len(frame) else None
        held = {
            trade.pair: {"quantity": trade.amount * (-1 if trade.is_short else 1), "price": trade.open_rate}
            for trade in Trade.get_trades_proxy(is_open=True) if trade.amount
        }  # fmt: skip
        kind = "market" if given.get("order_type") == "market" else "limit"
        order = {"symbol": pair, "side": "sell" if sells else "buy", "kind": kind, "price": rate}
        order |= {"stop": rate * (1 + (-1 if sells else 1) * self.stoploss), "strategy": type(self).__name__}
        account = {"equity": self.wallets.get_total_stake_amount(), "positions": held}
        Admission(self.guard).admit({**order, **size}, account=account, bars=bars)
    except Exception as error:  # noqa: BLE001 - raised, it would let the order through
        LOG.warning("the guard refuses an order of %s: %s", pair, error)
        return getattr(self.guard, "mode", "enforce") == "shadow"
    return True
