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
    _leverages: dict[str, float] = {}  # of entries to come, by pair

    def __init_subclass__(cls, **given: Any) -> None:
        super().__init_subclass__(**given)
        cls._leverages = {}
        for name, decide in HOOKS.items():
            own: Any = getattr(cls, name)
            if not hasattr(own, "decide"):
                setattr(cls, name, _guard_hook(own, decide))


def _guard_hook(own: Callable[..., Any], decide: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(own)
    def hook(self: Any, *args: Any, **given: Any) -> Any:
        inside, self._inside = self._inside, True  # a base's hook, called by super(), asks no second time
        trades = True
        try:
            mode = getattr(getattr(self, "dp", None), "runmode", None)
            trades = getattr(mode, "value", "live") in ("live", "dry_run")
            answer = own(self, *args, **given)
            return decide(self, answer, given) if answer and trades and not inside else answer
        except Exception as error:
            if inside or not trades:
                raise
            LOG.exception("%s failed: %s", own.__qualname__, error)
            return {_remember: 1.0, _exit: True, _enter: _is_shadow(self)}.get(decide)
        finally:
            self._inside = inside

    hook.decide = decide  # type: ignore[attr-defined]
    return hook


def _enter(self: Any, answer: Any, given: Mapping[str, Any]) -> Any:
    size = {"quantity": given["amount"], "reasons": str(given["entry_tag"] or "")}
    times = self._leverages.pop(given["pair"], 1.0)
    return _is_passed(self, given["pair"], given["side"] == "short", given["rate"], given, times, **size)


def _adjust(self: Any, answer: Any, given: Mapping[str, Any]) -> Any:
    stake, trade = (answer[0] if isinstance(answer, tuple) else answer) or 0.0, given["trade"]
    rate, times = given["current_rate"], trade.leverage or 1.0
    size = {"notional": stake * times}
    passed = stake <= 0 or _is_passed(self, trade.pair, trade.is_short, rate, given, times, **size)
    return answer if passed else None


def _exit(self: Any, answer: Any, given: Mapping[str, Any]) -> Any:
    size = {"quantity": given["amount"], "reasons": str(given["exit_reason"]), "stop": None}
    _is_passed(self, given["pair"], not given["trade"].is_short, given["rate"], given, **size)
    return answer


def _remember(self: Any, answer: Any, given: Mapping[str, Any]) -> Any:
    self._leverages[given["pair"]] = min(max(answer, 1.0), given["max_leverage"])
    return answer


def _is_shadow(self: Any) -> bool:
    try:
        return bool(self.guard.mode == "shadow")
    except Exception:  # noqa: BLE001 - as below
        return False


HOOKS = {
    "leverage": _remember, "confirm_trade_entry": _enter, "confirm_trade_exit": _exit,
    "adjust_trade_position": _adjust,
}  # fmt: skip


def _is_passed(
    self: Any, pair: str, sells: bool, rate: float, given: Mapping[str, Any], times: float = 1.0, **size: Any
) -> bool:
    """Whether an order may be sent; one that cannot be checked may not.

    `times` is its leverage: `stoploss` is a share of the stake.
    """

    def bars_of(symbol: str) -> Any:
        frame, _ = self.dp.get_analyzed_dataframe(symbol, self.timeframe)
        return frame.set_index("date")[BARS] if len(frame) else None

    try:
        from freqtrade.persistence import Trade

        held = {
            trade.pair: {"quantity": trade.amount * (-1 if trade.is_short else 1), "price": trade.open_rate}
            for trade in Trade.get_trades_proxy(is_open=True) if trade.amount
        }  # fmt: skip
        kind = "market" if given.get("order_type") == "market" else "limit"
        order = {"symbol": pair, "side": "sell" if sells else "buy", "kind": kind, "price": rate}
        name = "".join(sign for sign in type(self).__name__ if sign.isascii()).lstrip("_")
        stop = rate * (1 + (-1 if sells else 1) * self.stoploss / times)
        order |= {"stop": stop, "strategy": name or "agent"}
        account = {"equity": self.wallets.get_total_stake_amount(), "positions": held}
        Admission(self.guard, bars=bars_of).admit({**order, **size}, account=account)
    except Exception as error:  # noqa: BLE001 - raised, it would let the order through
        LOG.warning("the guard refuses an order of %s: %s", pair, error)
        return _is_shadow(self)
    return True
