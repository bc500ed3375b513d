"""Turn the kernel's event records into typed tick-validation events with readable details."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from schemas.canonical import content_id
from schemas.reflection import TickValidationEvent
from schemas.settings import NoTradeWindow
from schemas.vocabulary import ExitReason, TickEventKind
from trading_core.bars import BarSeries
from trading_core.kernel.fresh import no_trade_reasons
from trading_core.kernel.records import BREACHES, CLAMPS, ENTRY_KINDS, REFUSALS, STOP_SOURCES
from trading_core.kernel.state_machine import STATES

KINDS: Final = tuple(TickEventKind)
REASONS: Final = tuple(ExitReason)
FILLS: Final = frozenset(
    {TickEventKind.ENTRY_FILLED, TickEventKind.EXIT_FILLED, TickEventKind.SCALE_OUT_FILLED}
)


class EventRow(NamedTuple):
    """One record of the event buffer in plain Python numbers; see `kernel.records.EVENT`."""

    t: int
    s: int
    kind: int
    a: int
    b: int
    x: list[float]


@dataclass(frozen=True)
class PolicyTag:
    """What the engine knows about the owner of orders: ids only, no rules."""

    policy_id: str
    playbook_id: str


class TickEventDecoder:
    """Decoder of one run.

    A fill happened at the open of its bar and is known at its close.

    Order ids hash what the order means, so a replay or a second run gives the same ones.
    """

    def __init__(
        self, bars: BarSeries, config_hash: str, account: str, windows: Sequence[NoTradeWindow] = ()
    ) -> None:
        self._bars = bars
        self._windows = windows
        self._config_hash = config_hash
        self._account = account
        self._bar_ns = bars.bar_ns

    def decode(
        self, e: EventRow, tags: list[PolicyTag], entries: dict[int, dict[str, Any]]
    ) -> TickValidationEvent:
        """One typed event.

        Args:
            e: one record of the event buffer.
            tags: owners by policy reference.
            entries: ids of the open entry per symbol; this call keeps it up to date.
        """
        kind = KINDS[e.kind]
        t, s = e.t, e.s
        detail = _DETAIL[kind](self, e, tags, entries) if kind in _DETAIL else {}
        # The kernel's own records need no validation, and a live step has no time for it.
        return TickValidationEvent.model_construct(
            kind=kind,
            symbol=self._bars.symbols[s] if s >= 0 else None,
            bar_label=int(self._bars.times[t]),
            ts_event=int(self._bars.close_times[t]) - (self._bar_ns if kind in FILLS else 0),
            known_at=int(self._bars.close_times[t]),
            detail=detail,
        )

    def no_trade_reasons(self, e: EventRow) -> list[str]:
        """Why no entry may be ordered at the close of an event's bar, as the settings say."""
        return no_trade_reasons(int(self._bars.close_times[e.t]), self._bars.symbols[e.s], self._windows)

    def order_id(self, s: int, t: int, rule: str, leg: str) -> str:
        """Hash of config, account, symbol, bar label, rule, leg and attempt."""
        return content_id(
            [self._config_hash, self._account, self._bars.symbols[s], int(self._bars.times[t]), rule, leg, 1]
        )


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _owner(tags: list[PolicyTag], reference: int) -> dict[str, Any]:
    if reference < 0:
        return {"policy_id": None, "playbook_id": None}
    return {"policy_id": tags[reference].policy_id, "playbook_id": tags[reference].playbook_id}


def _side(direction: int) -> str:
    return "long" if direction > 0 else "short"


def _transition(decoder: TickEventDecoder, e: EventRow, tags: Any, entries: Any) -> dict[str, Any]:
    return {"from": str(STATES[e.a]), "to": str(STATES[e.b])}


def _armed(decoder: TickEventDecoder, e: EventRow, tags: Any, entries: Any) -> dict[str, Any]:
    x = e.x
    return {
        **_owner(tags, e.b),
        "direction": _side(e.a),
        "setup_high": x[0],
        "setup_low": x[1],
        "close": x[2],
    }


def _waited(decoder: TickEventDecoder, e: EventRow, tags: Any, entries: Any) -> dict[str, Any]:
    return {**_owner(tags, e.b), "bars": e.a}


def _owned(decoder: TickEventDecoder, e: EventRow, tags: Any, entries: Any) -> dict[str, Any]:
    return _owner(tags, e.b)


def _invalidated(decoder: TickEventDecoder, e: EventRow, tags: Any, entries: Any) -> dict[str, Any]:
    return {**_owner(tags, e.b), "direction": _side(e.a), "close": e.x[0]}


def _refined(decoder: TickEventDecoder, e: EventRow, tags: Any, entries: Any) -> dict[str, Any]:
    x = e.x
    level = "entry" if x[3] else "stop"
    return {
        **_owner(tags, e.b),
        f"{level}_before": x[0],
        level: x[1],
        "close": x[2],
    }


def _accepted(decoder: TickEventDecoder, e: EventRow, tags: list[PolicyTag], entries: Any) -> dict[str, Any]:
    x = e.x
    s, t = e.s, e.t
    owner = _owner(tags, e.b)
    order_id = decoder.order_id(s, t, owner["policy_id"], "entry")
    entries[s] = {**owner, "order_id": order_id, "direction": _side(e.a)}
    return {
        **entries[s],
        "quantity": x[0],
        "entry_kind": ENTRY_KINDS[int(x[5])],
        "signal_close": x[1],
        "stop": x[2],
        "target": x[3],
        "planned_risk": x[4],
    }


def _clamped(decoder: TickEventDecoder, e: EventRow, tags: Any, entries: Any) -> dict[str, Any]:
    clamps = [name for k, name in enumerate(CLAMPS) if e.a >> k & 1]
    return {
        **_owner(tags, e.b),
        "clamps": clamps,
        "wanted": e.x[0],
        "quantity": float(e.x[1]),
    }


def _refused(decoder: TickEventDecoder, e: EventRow, tags: Any, entries: Any) -> dict[str, Any]:
    x = e.x
    reason = REFUSALS[e.a]
    windows = decoder.no_trade_reasons(e) if reason == "no_trade_window" else []
    return {
        **_owner(tags, e.b),
        "reason": reason,
        "close": x[0],
        "stop": _number(x[1]),
        "target": _number(x[2]),
        **({"windows": windows} if windows else {}),
    }


def _entered(
    decoder: TickEventDecoder, e: EventRow, tags: Any, entries: dict[int, dict[str, Any]]
) -> dict[str, Any]:
    x = e.x
    entry = entries[e.s]
    return {
        **entry,
        "fill_id": content_id([entry["order_id"], "fill"]),
        "price": x[0],
        "quantity": x[1],
        "fee": x[2],
        "stop": x[3],
        "target": x[4],
        "raw_price": x[5],
    }


def _touched(decoder: TickEventDecoder, e: EventRow, tags: Any, entries: Any) -> dict[str, Any]:
    x = e.x
    return {
        **_owner(tags, e.b),
        "direction": _side(e.a),
        "level": x[0],
        "price": x[1],
    }


def _timed(decoder: TickEventDecoder, e: EventRow, tags: Any, entries: Any) -> dict[str, Any]:
    return {**_owner(tags, e.b), "bars": e.a, "price": e.x[0]}


def _exited(
    decoder: TickEventDecoder, e: EventRow, tags: Any, entries: dict[int, dict[str, Any]]
) -> dict[str, Any]:
    x = e.x
    s, t = e.s, e.t
    entry = entries.pop(s)
    order_id = decoder.order_id(s, t, entry["policy_id"], "exit")
    return {
        **entry,
        "order_id": order_id,
        "entry_order_id": entry["order_id"],
        "fill_id": content_id([order_id, "fill"]),
        "reason": str(REASONS[e.a]),
        "price": x[0],
        "quantity": x[1],
        "fee": x[2],
        "pnl": x[3],
        "r": x[4],
        "raw_price": x[5],
    }


def _breached(decoder: TickEventDecoder, e: EventRow, tags: Any, entries: Any) -> dict[str, Any]:
    x = e.x
    return {
        "limit": BREACHES[e.a],
        "equity": x[0],
        "peak": x[1],
        "day_start": x[2],
        "gross": x[3],
        "net": x[4],
        "losses_in_a_row": int(x[5]),
    }


def _released(decoder: TickEventDecoder, e: EventRow, tags: Any, entries: Any) -> dict[str, Any]:
    return {"limit": "drawdown" if e.a else "daily_loss", "equity": e.x[0]}


def _tightened(decoder: TickEventDecoder, e: EventRow, tags: Any, entries: Any) -> dict[str, Any]:
    x = e.x
    return {
        **_owner(tags, e.b),
        "stop_before": x[0],
        "stop": x[1],
        "by": STOP_SOURCES[int(x[2])],
    }


def _scaled(
    decoder: TickEventDecoder, e: EventRow, tags: Any, entries: dict[int, dict[str, Any]]
) -> dict[str, Any]:
    x = e.x
    s, t = e.s, e.t
    entry = entries[s]
    order_id = decoder.order_id(s, t, entry["policy_id"], "scale_out")
    return {
        **entry,
        "order_id": order_id,
        "entry_order_id": entry["order_id"],
        "fill_id": content_id([order_id, "fill"]),
        "price": x[0],
        "quantity": x[1],
        "fee": x[2],
        "remaining": x[3],
        "raw_price": x[4],
    }


_DETAIL: Final[dict[TickEventKind, Callable[[TickEventDecoder, EventRow, Any, Any], dict[str, Any]]]] = {
    TickEventKind.STATE_TRANSITION: _transition,
    TickEventKind.THESIS_ARMED: _armed,
    TickEventKind.ACTIVATION_TRIGGERED: _waited,
    TickEventKind.ENTRY_REFINED: _refined,
    TickEventKind.THESIS_EXPIRED: _waited,
    TickEventKind.INVALIDATION_HIT: _invalidated,
    TickEventKind.ORDER_ACCEPTED: _accepted,
    TickEventKind.ORDER_CLAMPED: _clamped,
    TickEventKind.ORDER_REFUSED: _refused,
    TickEventKind.ENTRY_FILLED: _entered,
    TickEventKind.STOP_BREACH: _touched,
    TickEventKind.TARGET_BREACH: _touched,
    TickEventKind.TIME_STOP: _timed,
    TickEventKind.EXIT_FILLED: _exited,
    TickEventKind.POLICY_EXPIRED: _owned,
    TickEventKind.STOP_TIGHTENED: _tightened,
    TickEventKind.ENVELOPE_BREACH: _breached,
    TickEventKind.ENVELOPE_RELEASED: _released,
    TickEventKind.SCALE_OUT_FILLED: _scaled,
}
