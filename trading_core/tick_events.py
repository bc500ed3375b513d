"""Turn the kernel's event records into typed tick-validation events with readable details."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from schemas.canonical import content_id
from schemas.reflection import TickValidationEvent
from schemas.vocabulary import ExitReason, TickEventKind
from trading_core.bars import BarSeries
from trading_core.kernel.records import BREACHES, CLAMPS, ENTRY_KINDS, REFUSALS, STOP_SOURCES
from trading_core.kernel.state_machine import STATES

KINDS: Final = tuple(TickEventKind)
REASONS: Final = tuple(ExitReason)
FILLS: Final = frozenset(
    {TickEventKind.ENTRY_FILLED, TickEventKind.EXIT_FILLED, TickEventKind.SCALE_OUT_FILLED}
)


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

    def __init__(self, bars: BarSeries, config_hash: str, account: str) -> None:
        self._bars = bars
        self._config_hash = config_hash
        self._account = account
        self._bar_ns = bars.bar_ns

    def decode(
        self, record: Any, tags: list[PolicyTag], entries: dict[int, dict[str, Any]]
    ) -> TickValidationEvent:
        """One typed event.

        Args:
            record: one element of the event buffer.
            tags: owners by policy reference.
            entries: ids of the open entry per symbol; this call keeps it up to date.
        """
        kind = KINDS[int(record["kind"])]
        t, s = int(record["t"]), int(record["s"])
        detail = _DETAIL[kind](self, record, tags, entries) if kind in _DETAIL else {}
        # The kernel's own records need no validation, and a live step has no time for it.
        return TickValidationEvent.model_construct(
            kind=kind,
            symbol=self._bars.symbols[s] if s >= 0 else None,
            bar_label=int(self._bars.times[t]),
            ts_event=int(self._bars.close_times[t]) - (self._bar_ns if kind in FILLS else 0),
            known_at=int(self._bars.close_times[t]),
            detail=detail,
        )

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


def _transition(decoder: TickEventDecoder, e: Any, tags: Any, entries: Any) -> dict[str, Any]:
    return {"from": str(STATES[int(e["a"])]), "to": str(STATES[int(e["b"])])}


def _armed(decoder: TickEventDecoder, e: Any, tags: Any, entries: Any) -> dict[str, Any]:
    x = e["x"]
    return {
        **_owner(tags, int(e["b"])),
        "direction": _side(e["a"]),
        "setup_high": float(x[0]),
        "setup_low": float(x[1]),
        "close": float(x[2]),
    }


def _waited(decoder: TickEventDecoder, e: Any, tags: Any, entries: Any) -> dict[str, Any]:
    return {**_owner(tags, int(e["b"])), "bars": int(e["a"])}


def _owned(decoder: TickEventDecoder, e: Any, tags: Any, entries: Any) -> dict[str, Any]:
    return _owner(tags, int(e["b"]))


def _invalidated(decoder: TickEventDecoder, e: Any, tags: Any, entries: Any) -> dict[str, Any]:
    return {**_owner(tags, int(e["b"])), "direction": _side(e["a"]), "close": float(e["x"][0])}


def _refined(decoder: TickEventDecoder, e: Any, tags: Any, entries: Any) -> dict[str, Any]:
    x = e["x"]
    level = "entry" if x[3] else "stop"
    return {
        **_owner(tags, int(e["b"])),
        f"{level}_before": float(x[0]),
        level: float(x[1]),
        "close": float(x[2]),
    }


def _accepted(decoder: TickEventDecoder, e: Any, tags: list[PolicyTag], entries: Any) -> dict[str, Any]:
    x = e["x"]
    s, t = int(e["s"]), int(e["t"])
    owner = _owner(tags, int(e["b"]))
    order_id = decoder.order_id(s, t, owner["policy_id"], "entry")
    entries[s] = {**owner, "order_id": order_id, "direction": _side(e["a"])}
    return {
        **entries[s],
        "quantity": float(x[0]),
        "entry_kind": ENTRY_KINDS[int(x[5])],
        "signal_close": float(x[1]),
        "stop": float(x[2]),
        "target": float(x[3]),
        "planned_risk": float(x[4]),
    }


def _clamped(decoder: TickEventDecoder, e: Any, tags: Any, entries: Any) -> dict[str, Any]:
    clamps = [name for k, name in enumerate(CLAMPS) if int(e["a"]) >> k & 1]
    return {
        **_owner(tags, int(e["b"])),
        "clamps": clamps,
        "wanted": float(e["x"][0]),
        "quantity": float(e["x"][1]),
    }


def _refused(decoder: TickEventDecoder, e: Any, tags: Any, entries: Any) -> dict[str, Any]:
    x = e["x"]
    return {
        **_owner(tags, int(e["b"])),
        "reason": REFUSALS[int(e["a"])],
        "close": float(x[0]),
        "stop": _number(x[1]),
        "target": _number(x[2]),
    }


def _entered(
    decoder: TickEventDecoder, e: Any, tags: Any, entries: dict[int, dict[str, Any]]
) -> dict[str, Any]:
    x = e["x"]
    entry = entries[int(e["s"])]
    return {
        **entry,
        "fill_id": content_id([entry["order_id"], "fill"]),
        "price": float(x[0]),
        "quantity": float(x[1]),
        "fee": float(x[2]),
        "stop": float(x[3]),
        "target": float(x[4]),
        "raw_price": float(x[5]),
    }


def _touched(decoder: TickEventDecoder, e: Any, tags: Any, entries: Any) -> dict[str, Any]:
    x = e["x"]
    return {
        **_owner(tags, int(e["b"])),
        "direction": _side(e["a"]),
        "level": float(x[0]),
        "price": float(x[1]),
    }


def _timed(decoder: TickEventDecoder, e: Any, tags: Any, entries: Any) -> dict[str, Any]:
    return {**_owner(tags, int(e["b"])), "bars": int(e["a"]), "price": float(e["x"][0])}


def _exited(
    decoder: TickEventDecoder, e: Any, tags: Any, entries: dict[int, dict[str, Any]]
) -> dict[str, Any]:
    x = e["x"]
    s, t = int(e["s"]), int(e["t"])
    entry = entries.pop(s)
    order_id = decoder.order_id(s, t, entry["policy_id"], "exit")
    return {
        **entry,
        "order_id": order_id,
        "entry_order_id": entry["order_id"],
        "fill_id": content_id([order_id, "fill"]),
        "reason": str(REASONS[int(e["a"])]),
        "price": float(x[0]),
        "quantity": float(x[1]),
        "fee": float(x[2]),
        "pnl": float(x[3]),
        "r": float(x[4]),
        "raw_price": float(x[5]),
    }


def _breached(decoder: TickEventDecoder, e: Any, tags: Any, entries: Any) -> dict[str, Any]:
    x = e["x"]
    return {
        "limit": BREACHES[int(e["a"])],
        "equity": float(x[0]),
        "peak": float(x[1]),
        "day_start": float(x[2]),
        "gross": float(x[3]),
        "net": float(x[4]),
        "losses_in_a_row": int(x[5]),
    }


def _released(decoder: TickEventDecoder, e: Any, tags: Any, entries: Any) -> dict[str, Any]:
    return {"limit": "drawdown" if int(e["a"]) else "daily_loss", "equity": float(e["x"][0])}


def _tightened(decoder: TickEventDecoder, e: Any, tags: Any, entries: Any) -> dict[str, Any]:
    x = e["x"]
    return {
        **_owner(tags, int(e["b"])),
        "stop_before": float(x[0]),
        "stop": float(x[1]),
        "by": STOP_SOURCES[int(x[2])],
    }


def _scaled(
    decoder: TickEventDecoder, e: Any, tags: Any, entries: dict[int, dict[str, Any]]
) -> dict[str, Any]:
    x = e["x"]
    s, t = int(e["s"]), int(e["t"])
    entry = entries[s]
    order_id = decoder.order_id(s, t, entry["policy_id"], "scale_out")
    return {
        **entry,
        "order_id": order_id,
        "entry_order_id": entry["order_id"],
        "fill_id": content_id([order_id, "fill"]),
        "price": float(x[0]),
        "quantity": float(x[1]),
        "fee": float(x[2]),
        "remaining": float(x[3]),
        "raw_price": float(x[4]),
    }


_DETAIL: Final[dict[TickEventKind, Callable[[TickEventDecoder, Any, Any, Any], dict[str, Any]]]] = {
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
