"""Turn the kernel's event records into typed tick-validation events with readable details."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from schemas.canonical import content_id
from schemas.settings.envelope import NoTradeWindow
from schemas.tick_validation import TickValidationEvent
from schemas.vocabulary import EventField, ExitReason, TickEventKind
from trading_core.bars import BarSeries
from trading_core.kernel.flags import no_trade_reasons
from trading_core.kernel.records import BREACHES, CLAMPS, ENTRY_KINDS, REFUSALS, STOP_SOURCES
from trading_core.kernel.state_machine import STATES

KINDS: Final = tuple(TickEventKind)
REASONS: Final = tuple(ExitReason)
FILLS: Final = frozenset(
    {
        TickEventKind.ENTRY_FILLED,
        TickEventKind.ADD_FILLED,
        TickEventKind.EXIT_FILLED,
        TickEventKind.SCALE_OUT_FILLED,
    }
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


Detail = dict[str, Any]
Entries = dict[int, Detail]
Read = Callable[["TickEventDecoder", EventRow], Any]
ReadIds = Callable[["TickEventDecoder", EventRow, Mapping[int, PolicyTag], Entries], Detail]
ABSENT: Final = object()


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

    def decode(
        self, e: EventRow, tags: Mapping[int, PolicyTag], entries: dict[int, dict[str, Any]]
    ) -> TickValidationEvent:
        """One typed event.

        Args:
            e: one record of the event buffer.
            tags: owners by policy reference.
            entries: ids of the open entry per symbol; this call keeps it up to date.
        """
        kind = KINDS[e.kind]
        t, s = e.t, e.s
        ids, fields = _READS[kind]
        read = {name: value for name, of in fields if (value := of(self, e)) is not ABSENT}
        # The kernel's own records need no validation, and a live step has no time for it.
        return TickValidationEvent.model_construct(
            kind=kind,
            symbol=self._bars.symbols[s] if s >= 0 else None,
            bar_label=int(self._bars.times[t]),
            ts_event=self._bars.open_of(t) if kind in FILLS else int(self._bars.close_times[t]),
            known_at=int(self._bars.close_times[t]),
            detail={**ids(self, e, tags, entries), **read},
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


def _side(direction: int) -> str:
    return "long" if direction > 0 else "short"


def _policy(
    decoder: "TickEventDecoder", e: EventRow, tags: Mapping[int, PolicyTag], entries: Entries
) -> Detail:
    if e.b < 0:
        return dict.fromkeys(TickEventKind.POLICY_EXPIRED.ids.names)
    return {"policy_id": tags[e.b].policy_id, "playbook_id": tags[e.b].playbook_id}


def _order(
    decoder: "TickEventDecoder", e: EventRow, tags: Mapping[int, PolicyTag], entries: Entries
) -> Detail:
    owner = _policy(decoder, e, tags, entries)
    order_id = decoder.order_id(e.s, e.t, owner["policy_id"], "entry")
    entries[e.s] = {**owner, "order_id": order_id, "direction": _side(e.a)}
    return entries[e.s]


def _fill(
    decoder: "TickEventDecoder", e: EventRow, tags: Mapping[int, PolicyTag], entries: Entries
) -> Detail:
    return {**entries[e.s], "fill_id": content_id([entries[e.s]["order_id"], "fill"])}


def _fill_of(leg: str) -> ReadIds:
    def ids(
        decoder: "TickEventDecoder", e: EventRow, tags: Mapping[int, PolicyTag], entries: Entries
    ) -> Detail:
        entry = entries.pop(e.s) if leg == "exit" else entries[e.s]
        order_id = decoder.order_id(e.s, e.t, entry["policy_id"], leg)
        fill_id = content_id([order_id, "fill"])
        return {**entry, "order_id": order_id, "entry_order_id": entry["order_id"], "fill_id": fill_id}

    return ids


def _windows(decoder: "TickEventDecoder", e: EventRow) -> Any:
    refused = REFUSALS[e.a] == "no_trade_window"
    return (refused and decoder.no_trade_reasons(e)) or ABSENT


_IDS: Final[dict[str, ReadIds]] = {
    "none": lambda decoder, e, tags, entries: {},
    "policy": _policy,
    "order": _order,
    "entry": _fill,
    "add": _fill_of("add"),
    "scale_out": _fill_of("scale_out"),
    "exit": _fill_of("exit"),
}
_READINGS: Final[dict[str, Callable[[Any], Any]]] = {
    "number": float,
    "finite": _number,
    "count": int,
    "side": _side,
    "state": lambda code: str(STATES[code]),
    "exit": lambda code: str(REASONS[code]),
    "refusal": REFUSALS.__getitem__,
    "clamps": lambda bits: [name for k, name in enumerate(CLAMPS) if bits >> k & 1],
    "breach": BREACHES.__getitem__,
    "halt": lambda code: "drawdown" if code else "daily_loss",
    "stop_source": lambda code: STOP_SOURCES[int(code)],
    "entry_kind": lambda code: ENTRY_KINDS[int(code)],
}


def _read(field: EventField) -> Read:
    if field.reading == "windows":
        return _windows
    read, place, when = _READINGS[field.reading], field.place, field.when
    if place == "a":
        return lambda decoder, e: read(e.a)
    if place == "b":
        return lambda decoder, e: read(e.b)
    if when is None:
        return lambda decoder, e: read(e.x[place])
    return lambda decoder, e: read(e.x[place]) if bool(e.x[3]) == when else ABSENT


_READS: Final = {
    kind: (_IDS[kind.ids.leg], tuple((field.name, _read(field)) for field in kind.fields))
    for kind in TickEventKind
}
