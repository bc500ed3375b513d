"""Turn the kernel's event records into typed tick-validation events with readable details."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import not_
from typing import Any, Final, NamedTuple

import numpy as np

from schemas.canonical import content_id
from schemas.settings.envelope import NoTradeWindow
from schemas.tick_validation import TickValidationEvent
from schemas.vocabulary import ExitReason, TickEventKind
from trading_core.bars import BarSeries
from trading_core.kernel.flags import no_trade_reasons
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


Detail = dict[str, Any]
Entries = dict[int, Detail]
Read = Callable[["TickEventDecoder", EventRow], Any]
ReadIds = Callable[["TickEventDecoder", EventRow, Mapping[int, PolicyTag], Entries], Detail]
OWNER: Final = ("policy_id", "playbook_id")
ABSENT: Final = object()


class Ids(NamedTuple):
    """Whose an event is: names of the ids, and what finds them."""

    names: tuple[str, ...]
    read: ReadIds


class Form(NamedTuple):
    """One form in which events of a kind come, as the journal page shows it.

    Attributes:
        when: it is written.
        without: names of fields that it lacks, or that `when` tells of.
        beside: names of fields that the policy loop writes into it.
    """

    when: str
    without: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()


class Fields(NamedTuple):
    """What an event of one kind says beside its bar: ids, each further field by name, and when it comes."""

    ids: Ids
    read: dict[str, Read]
    forms: tuple[Form, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Of all fields; one that the record leaves out is among them."""
        return (*self.ids.names, *self.read)


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
        ids, fields, _ = EVENT_FIELDS[kind]
        read = {name: value for name, of in fields.items() if (value := of(self, e)) is not ABSENT}
        # The kernel's own records need no validation, and a live step has no time for it.
        return TickValidationEvent.model_construct(
            kind=kind,
            symbol=self._bars.symbols[s] if s >= 0 else None,
            bar_label=int(self._bars.times[t]),
            ts_event=int(self._bars.close_times[t]) - (self._bar_ns if kind in FILLS else 0),
            known_at=int(self._bars.close_times[t]),
            detail={**ids.read(self, e, tags, entries), **read},
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
        return dict.fromkeys(OWNER)
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


def _a(read: Callable[[int], Any]) -> Read:
    """Of the first whole number of a record."""
    return lambda decoder, e: read(e.a)


def _x(place: int, read: Callable[[float], Any] = float, when: Callable[[float], bool] | None = None) -> Read:
    """Of one float of a record; `when` asks the fourth whether the field is there."""
    if when is None:
        return lambda decoder, e: read(e.x[place])
    return lambda decoder, e: read(e.x[place]) if when(e.x[3]) else ABSENT


def _floats(*names: str) -> dict[str, Read]:
    """The floats of a record from the first on."""
    return {name: _x(place) for place, name in enumerate(names)}


NOBODY: Final = Ids((), lambda decoder, e, tags, entries: {})
POLICY: Final = Ids(OWNER, _policy)
ENTRY: Final = (*OWNER, "order_id", "direction")
LEG: Final = (*ENTRY, "entry_order_id", "fill_id")
_DIRECTION: Final = {"direction": _a(_side)}
_TOUCHED: Final = _DIRECTION | _floats("level", "price")
_WAITED: Final = {"bars": _a(int)}

# What each kind says beside its bar: ids, what is read from the record as the kernel wrote it, and when.
EVENT_FIELDS: Final[dict[TickEventKind, Fields]] = {
    TickEventKind.STATE_TRANSITION: Fields(
        NOBODY,
        {"from": _a(lambda a: str(STATES[a])), "to": lambda decoder, e: str(STATES[e.b])},
        (Form("a legal change of state"),),
    ),
    TickEventKind.THESIS_ARMED: Fields(
        POLICY,
        _DIRECTION | _floats("setup_high", "setup_low", "close"),
        (Form("the setup is true at a close"),),
    ),
    TickEventKind.ACTIVATION_TRIGGERED: Fields(
        POLICY, _WAITED, (Form("the activation is true; `bars` since the thesis armed"),)
    ),
    TickEventKind.ENTRY_REFINED: Fields(
        POLICY,
        {
            "entry_before": _x(0, when=bool),
            "entry": _x(1, when=bool),
            "stop_before": _x(0, when=not_),
            "stop": _x(1, when=not_),
            "close": _x(2),
        },
        (
            Form("a tighter stop while armed", without=("entry", "entry_before")),
            Form(
                "a better limit than the market, or than the one that rests", without=("stop", "stop_before")
            ),
        ),
    ),
    TickEventKind.THESIS_EXPIRED: Fields(POLICY, _WAITED, (Form("the activation window is over"),)),
    TickEventKind.INVALIDATION_HIT: Fields(
        POLICY, _DIRECTION | _floats("close"), (Form("the invalidation is true at a close"),)
    ),
    TickEventKind.ORDER_ACCEPTED: Fields(
        Ids(ENTRY, _order),
        _floats("quantity", "signal_close", "stop", "target", "planned_risk")
        | {"entry_kind": _x(5, lambda kind: ENTRY_KINDS[int(kind)])},
        (
            Form(
                "a market entry will fill at the next open, a limit or stop entry rests until it is met or "
                "the window ends; `signal_close` is what the levels are measured from: the close, or the "
                "price of a resting entry"
            ),
        ),
    ),
    TickEventKind.ORDER_CLAMPED: Fields(
        POLICY,
        {"clamps": _a(lambda a: [name for k, name in enumerate(CLAMPS) if a >> k & 1])}
        | _floats("wanted", "quantity"),
        (Form("the size was cut"),),
    ),
    TickEventKind.ORDER_REFUSED: Fields(
        POLICY,
        {"reason": _a(REFUSALS.__getitem__), "close": _x(0), "stop": _x(1, _number), "target": _x(2, _number)}
        | {"windows": _windows},
        (
            Form(
                "no order came of an activation, or a resting entry was taken back; `close` is the price of "
                "a resting entry then. `windows` has the reasons of the `envelope.no_trade_windows` it falls "
                "into, and is left out where there are none",
                without=("windows",),
            ),
        ),
    ),
    TickEventKind.ENTRY_FILLED: Fields(
        Ids((*ENTRY, "fill_id"), _fill),
        _floats("price", "quantity", "fee", "stop", "target", "raw_price"),
        (Form("an entry; `raw_price` before slippage"),),
    ),
    TickEventKind.SCALE_OUT_FILLED: Fields(
        Ids(LEG, _fill_of("scale_out")),
        _floats("price", "quantity", "fee", "remaining", "raw_price"),
        (Form("a share of the position was closed; its trade comes with the exit of the rest"),),
    ),
    TickEventKind.STOP_BREACH: Fields(POLICY, _TOUCHED, (Form("the bar reached the stop"),)),
    TickEventKind.TARGET_BREACH: Fields(POLICY, _TOUCHED, (Form("the bar reached the target"),)),
    TickEventKind.TIME_STOP: Fields(
        POLICY, {"bars": _a(int), "price": _x(0)}, (Form("the horizon is over"),)
    ),
    TickEventKind.EXIT_FILLED: Fields(
        Ids(LEG, _fill_of("exit")),
        {"reason": _a(lambda a: str(REASONS[a]))}
        | _floats("price", "quantity", "fee", "pnl", "r", "raw_price"),
        (Form("an exit; `quantity` is what was left, `pnl` and `r` are of the whole trade"),),
    ),
    TickEventKind.POLICY_EXPIRED: Fields(
        POLICY, {}, (Form("a policy in force reached its horizon without a position"),)
    ),
    TickEventKind.STOP_TIGHTENED: Fields(
        POLICY,
        _floats("stop_before", "stop") | {"by": _x(2, lambda source: STOP_SOURCES[int(source)])},
        (
            Form("a stop moved closer, `by` a trailing stop (`trail`) or at `break_even`"),
            Form(
                "the same by an evaluation (`policy`), with the amendment that let it",
                beside=("amendment_id",),
            ),
        ),
    ),
    TickEventKind.ENVELOPE_BREACH: Fields(
        NOBODY,
        {"limit": _a(BREACHES.__getitem__)}
        | _floats("equity", "peak", "day_start", "gross", "net")
        | {"losses_in_a_row": _x(5, int)},
        (Form("a limit of the portfolio broke"),),
    ),
    TickEventKind.ENVELOPE_RELEASED: Fields(
        NOBODY,
        {"limit": _a(lambda a: "drawdown" if a else "daily_loss"), "equity": _x(0)},
        (Form("entries are allowed again"),),
    ),
}
