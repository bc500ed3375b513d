"""The engine as the rest of the program sees it.

The kernel with its state, its rule columns and the doors through which the policy loop may touch it.

`advance` validates bars until a boundary and returns what happened as typed events; it is the tick path,
guarded against model calls, memory reads and policy writes. Between calls the policy loop may install or
retire a policy, tighten a stop and mark an evaluation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from schemas.errors import InvariantViolation
from schemas.tick_validation import TickValidationEvent
from schemas.vocabulary import OverrideReason, PolicyEventKind, PolicyState, TickEventKind
from trading_core.bars import BarSeries
from trading_core.kernel import records as rec
from trading_core.kernel.execution import on_tick
from trading_core.kernel.fresh import fresh_state
from trading_core.kernel.loop import FAULT, advance
from trading_core.kernel.records import REFUSALS
from trading_core.kernel.state_machine import IDLE, INVALIDATED, LEGAL, STATES, THESIS_ARMED
from trading_core.policy_orders import PolicyOrders, check_orders
from trading_core.rule_bank import EngineColumns, RuleBank
from trading_core.tick_events import EventRow, PolicyTag, TickEventDecoder
from trading_core.tick_guard import TickGuard

EVENTS = {
    rec.BIT_REGIME: PolicyEventKind.REGIME_CHANGE,
    rec.BIT_OPENED: PolicyEventKind.POSITION_OPENED,
    rec.BIT_CLOSED: PolicyEventKind.POSITION_CLOSED,
    rec.BIT_BAND: PolicyEventKind.VOLATILITY_BAND_SHIFT,
    rec.BIT_HEARTBEAT: PolicyEventKind.HEARTBEAT,
    rec.BIT_REPLAN: PolicyEventKind.REPLAN,
}
OVERRIDES = {
    rec.BIT_INVALIDATION: OverrideReason.INVALIDATION_HIT,
    rec.BIT_ENVELOPE: OverrideReason.ENVELOPE_BREACH,
    rec.BIT_KILL: OverrideReason.KILL_SWITCH,
    rec.BIT_STALE: OverrideReason.STALE_DATA,
    rec.BIT_CONFLICT: OverrideReason.CONFLICTING_DATA,
    rec.BIT_SHOCK: OverrideReason.VOLATILITY_SHOCK,
}
REFERENCES = ("policy", "position_policy")  # fields of the state that say whose something is


@dataclass(frozen=True)
class Boundary:
    """A policy boundary of one symbol at the close of row `t`."""

    s: int
    t: int
    events: tuple[PolicyEventKind, ...]
    overrides: tuple[OverrideReason, ...]
    state: PolicyState


@dataclass(frozen=True)
class Advance:
    """What one call validated: events in order, closed trades, boundaries in symbol order."""

    t: int
    events: tuple[TickValidationEvent, ...]
    trades: npt.NDArray[Any]
    boundaries: tuple[Boundary, ...]
    bars_validated: int


class TriggerEngine:
    """Engine of one run over one `BarSeries`.

    Attributes:
        t: the next row to validate.
        state, portfolio: records, see `records`; read by snapshots, written by the kernel and here.
        columns: rule columns that the indices of `PolicyOrders` point into.
    """

    def __init__(
        self,
        bars: BarSeries,
        flags: npt.NDArray[np.uint8],
        parameters: npt.NDArray[Any],
        cash: float,
        guard: TickGuard,
        decoder: TickEventDecoder,
        *,
        columns: EngineColumns | None = None,
        buckets: npt.NDArray[np.int64] | None = None,
        block_edges: npt.NDArray[np.int64] | None = None,
    ) -> None:
        """An engine before its first bar.

        Args:
            bars: the bars of the run; rows that they gain are announced by `extend`.
            flags: uint8 (T, S), `records.FLAG_...` of every bar.
            parameters: see `kernel.fresh`.
            cash: at the start.
            guard: of the run.
            decoder: of the run.
            columns: where rule columns stand; None: a bank of the engine's own.
            buckets: int64 (S,), membership in correlation buckets; None: none.
            block_edges: int64 (E,), ascending: closes, ns, from which a bar belongs to the next block of
                `envelope.max_entries_per_block`; None: all bars are one block.
        """
        rows, symbols = bars.shape
        self.bars = bars
        self.guard = guard
        self.state, self.portfolio = fresh_state(symbols, cash)
        if buckets is not None:
            self.state["buckets"] = buckets
        self.parameters = parameters
        self._block_edges = rec.NO_EDGES if block_edges is None else np.ascontiguousarray(block_edges)
        self._equity = np.full(rows, np.nan)
        self._gross = np.full(rows, np.nan)
        self.t = 0
        self.columns = columns or RuleBank(rows)
        self._decoder = decoder
        self._tags: dict[int, PolicyTag] = {}
        self._installed = 0
        self._entries: dict[int, dict[str, Any]] = {}
        self._flags = np.require(flags, dtype=np.uint8, requirements=["C", "W"])
        self._known_rows = rows
        self._events = np.zeros(max(4_096, 64 * symbols), dtype=rec.EVENT)
        self._count = np.zeros(1, dtype=np.int64)
        self._trades = np.zeros(max(1_024, 4 * symbols), dtype=rec.TRADE)
        self._n_trades = np.zeros(1, dtype=np.int64)

    @property
    def equity(self) -> npt.NDArray[np.float64]:
        """float64 (T,): portfolio value at every close, NaN until validated."""
        return self._equity[: self.bars.shape[0]]

    @property
    def gross(self) -> npt.NDArray[np.float64]:
        """float64 (T,): gross exposure at every close in quote currency, NaN until validated."""
        return self._gross[: self.bars.shape[0]]

    @property
    def flags(self) -> npt.NDArray[np.uint8]:
        """uint8 (T, S): `records.FLAG_...` of every bar."""
        return self._flags[: self.bars.shape[0]]

    def open_entry_rows(self) -> npt.NDArray[np.int64]:
        """Rows at which the open positions were entered, by symbol."""
        held = self.state["quantity"] != 0.0
        return np.asarray(self.state["entry_t"][held], dtype=np.int64)

    def extend(self, flags: npt.NDArray[np.uint8]) -> None:
        """Take notice of rows that the bars have gained.

        Args:
            flags: uint8 (n, S) of the new rows.

        Raises:
            InvariantViolation: not as many flags as new rows.
        """
        rows = self.bars.shape[0]
        if rows > self._equity.size:
            self._make_room(2 * rows)
        start = rows - flags.shape[0]
        if start != self._known_rows:
            raise InvariantViolation(f"{flags.shape[0]} rows of flags after {self._known_rows}: {rows} rows")
        self._flags[start:rows] = flags
        self._known_rows = rows

    def _make_room(self, rows: int) -> None:
        for name in ("_equity", "_gross"):
            grown = np.full(rows, np.nan)
            grown[: self._known_rows] = getattr(self, name)[: self._known_rows]
            setattr(self, name, grown)
        flags = np.zeros((rows, self._flags.shape[1]), dtype=np.uint8)
        flags[: self._known_rows] = self._flags[: self._known_rows]
        self._flags = flags

    @property
    def account_gone(self) -> bool:
        """Whether nothing was left at the last validated close; shadow ledgers have no account to lose."""
        return bool(self.parameters["limited"][0] == 1 and self.portfolio["equity"][0] <= 0.0)

    @property
    def done(self) -> bool:
        """Whether every bar has been validated, or there is nothing left to trade with."""
        return self.t >= self.bars.shape[0] or self.account_gone

    def advance(self, until: int | None = None) -> Advance:
        """Validate bars from `t` to the next boundary, a full buffer, or row `until` (exclusive).

        Raises:
            InvariantViolation: an illegal transition, something forbidden ran inside the tick path, or the
                bars have rows that `extend` did not announce.
        """
        if self.bars.shape[0] != self._known_rows:
            raise InvariantViolation(
                f"the bars have {self.bars.shape[0]} rows and the engine knows of {self._known_rows}"
            )
        end = self.bars.shape[0] if until is None else min(until, self.bars.shape[0])
        before = int(self.portfolio["bars"][0])
        self._count[0] = 0
        self._n_trades[0] = 0
        with self.guard.tick_path():
            self.t, code = self._run_kernel(end)
        if self._count[0] > self._events.size:
            raise InvariantViolation(f"{int(self._count[0])} events in one bar at row {self.t - 1}")
        if code == FAULT:
            source, target = divmod(int(self.portfolio["fault"][0]) - 1, len(STATES))
            raise InvariantViolation(
                f"illegal transition {STATES[source]} -> {STATES[target]} at row {self.t - 1}"
            )
        rows = self._events[: int(self._count[0])].tolist()
        events = tuple(self._decode(row) for row in rows)
        return Advance(
            t=self.t,
            events=events,
            trades=self._trades[: int(self._n_trades[0])].copy(),
            boundaries=self._boundaries(self.t - 1),
            bars_validated=int(self.portfolio["bars"][0]) - before,
        )

    def _run_kernel(self, end: int) -> tuple[int, int]:
        b = self.bars
        t, code = advance(
            self.t, end, b.open, b.high, b.low, b.close, b.present, b.close_times, self._flags,
            self.columns.truths, self.columns.numbers, self.state, self.portfolio, self.parameters,
            self._events, self._count, self._trades, self._n_trades, self._equity, self._gross,
            self._block_edges,
        )  # fmt: skip
        return int(t), int(code)

    def _decode(self, row: tuple[Any, ...]) -> TickValidationEvent:
        return self._decoder.decode(EventRow(*row), self._tags, self._entries)

    def _boundaries(self, t: int) -> tuple[Boundary, ...]:
        found: list[Boundary] = []
        if self.account_gone:
            return ()  # there is nothing left to decide about
        for s, bits in enumerate(self.state["bits"].tolist()):
            if bits == 0 or not self.bars.present[t, s]:
                continue
            events = tuple(kind for bit, kind in EVENTS.items() if bits & bit)
            overrides = tuple(reason for bit, reason in OVERRIDES.items() if bits & bit)
            found.append(Boundary(s, t, events, overrides, STATES[int(self.state["state"][s])]))
        return tuple(found)

    def install(self, s: int, orders: PolicyOrders) -> tuple[TickValidationEvent, ...]:
        """Put a frozen policy in force for symbol `s`; its rules are first evaluated on the next bar.

        A resting entry of the policy before it is taken back. A symbol with a position accepts a policy
        only if it never ends (shadow ledgers): one exit authority per position.

        Raises:
            InvariantViolation: the symbol holds a position, or the orders cannot be.
        """
        check_orders(orders)
        st = self.state[s]
        if st["direction"] != 0 and not orders.never_ends:
            raise InvariantViolation(
                f"{self.bars.symbols[s]} holds a position: its exits belong to the policy that opened it"
            )
        events = self.retire(s)
        if len(self._tags) >= 2 * len(self.bars.symbols):  # now and then: it looks at every symbol
            self._tags = self.tags_in_force()
        self._tags[self._installed] = orders.tag
        self._installed += 1
        own = int(st["own"])
        padded = np.full((rec.MAX_SCALE_OUTS, 2), np.nan)
        if orders.scale_outs:
            padded[: len(orders.scale_outs)] = orders.scale_outs
        values: dict[str, Any] = {
            "policy": self._installed - 1,
            "policy_direction": orders.direction,
            "policy_first_t": self.t,
            "policy_expires_own": own + orders.horizon,
            "policy_window": orders.window,
            "policy_horizon": orders.horizon,
            "policy_risk": orders.risk_fraction,
            "policy_immediate": orders.immediate,
            "policy_never_ends": orders.never_ends,
            "policy_repeats": orders.repeats,
            "policy_stop_pct": orders.stop_pct,
            "policy_target_pct": orders.target_pct,
            "k_setup": orders.setup,
            "k_activation": orders.activation,
            "k_invalidation": orders.invalidation,
            "k_stop": orders.stop,
            "k_target": orders.target,
            "k_refinement": orders.refinement,
            "k_entry": orders.entry,
            "k_trail": orders.trail,
            "k_volatility": orders.volatility,
            "policy_exit": orders.exit_rule,
            "policy_trail": orders.trail_rule,
            "policy_entry": rec.ENTRY_KINDS.index(orders.entry_kind),
            "policy_refines_entry": orders.refines_entry,
            "policy_break_even_r": orders.break_even_r,
            "policy_scale_r": padded[:, 0],
            "policy_scale_share": padded[:, 1],
            "policy_target_moves": orders.target_moves,
            "policy_add_r": orders.add_at_r,
            "policy_add_share": orders.add_share,
            "armed_stop": np.nan,
        }
        for name, value in values.items():
            st[name] = value
        return events

    def install_everywhere(self, orders: PolicyOrders, setups: Sequence[int]) -> None:
        """Before the first bar: `install` for every symbol, with the setup column of each."""
        self.install(0, orders)
        buckets = self.state["buckets"].copy()
        self.state[:] = self.state[0]
        self.state["buckets"], self.state["k_setup"] = buckets, setups

    def retire(self, s: int) -> tuple[TickValidationEvent, ...]:
        """Take the frozen policy of symbol `s` out of force.

        A position keeps its exits, a resting entry does not stay.
        """
        st = self.state[s]
        reference = int(st["policy"])
        st["policy"] = -1
        events = []
        if st["order"]:
            st["order"] = 0
            self.portfolio["orders"] -= 1
            levels = (float(st["order_base"]), float(st["order_stop"]), float(st["order_target"]))
            events.append(
                self._write_event(
                    TickEventKind.ORDER_REFUSED, s, REFUSALS.index("retired"), reference, *levels
                )
            )
        if st["state"] == THESIS_ARMED or (st["state"] == INVALIDATED and st["direction"] == 0):
            events.append(self._transition(s, IDLE))
        return tuple(events)

    def _transition(self, s: int, target: int) -> TickValidationEvent:
        st = self.state[s]
        if LEGAL[int(st["state"]), target] == 0:
            raise InvariantViolation(f"illegal transition {STATES[int(st['state'])]} -> {STATES[target]}")
        event = self._write_event(TickEventKind.STATE_TRANSITION, s, int(st["state"]), target)
        st["state"] = target
        return event

    def tighten_stop(self, s: int, level: float) -> TickValidationEvent:
        """Move the stop of an open position closer to the market; nothing else is allowed.

        Raises:
            InvariantViolation: no position, a looser stop, one on the wrong side of the last close, or off
                the grid: what was decided is what is put in force.
        """
        st = self.state[s]
        direction, stop, close = int(st["direction"]), float(st["stop"]), float(st["last_close"])
        if direction == 0:
            raise InvariantViolation(f"{self.bars.symbols[s]} has no position whose stop could be tightened")
        if not (level - stop) * direction > 0 or not (close - level) * direction > 0:
            raise InvariantViolation(
                f"stop {level!r} is not tighter than {stop!r} and behind the close {close!r}"
            )
        if on_tick(level, tick := float(self.parameters["tick"][0])) != level:
            raise InvariantViolation(f"stop {level!r} does not lie on the grid of {tick!r}")
        event = self._write_event(
            TickEventKind.STOP_TIGHTENED, s, direction, int(st["position_policy"]), stop, level
        )
        st["stop"] = level
        return event

    def _write_event(
        self, kind: TickEventKind, s: int, a: int, b: int, x0: float = 0.0, x1: float = 0.0, x2: float = 0.0
    ) -> TickValidationEvent:
        event = self._events[0]
        event["t"], event["s"], event["kind"], event["a"], event["b"] = self.t - 1, s, rec.KIND[kind], a, b
        event["x"] = (x0, x1, x2, 0.0, 0.0, 0.0)
        return self._decode(self._events[0].item())

    def tag(self, reference: int) -> PolicyTag:
        """Owner behind a policy reference of the state or of a trade record."""
        return self._tags[reference]

    def tags_in_force(self, s: int | None = None) -> dict[int, PolicyTag]:
        """Owners that an order, a position or a policy in force refers to, by reference; `s`: of a symbol."""
        state = self.state if s is None else self.state[s : s + 1]
        held = np.concatenate([state[name] for name in REFERENCES])
        return {reference: self._tags[reference] for reference in sorted(set(held[held >= 0].tolist()))}

    def mark_evaluated(self, s: int) -> None:
        """Restart the heartbeat of symbol `s`; only a real evaluation does this, never a skip."""
        for name in ("last_evaluation", "last_beat"):
            self.state[name][s] = self.state["own"][s]
        self.state["beat_suppressed"][s] = 0

    def request_boundary(self, s: int) -> None:
        """Open a boundary for symbol `s` at the close of its next bar, as a replan demands."""
        self.state["requested"][s] = 1

    def doubt_data(self, s: int) -> None:
        """Open a boundary for symbol `s` at the close of its next bar, in any state: its data conflict."""
        self.state["held"][s] |= rec.BIT_CONFLICT

    def reopen(self, boundary: Boundary) -> None:
        """Open a boundary again at the close of the symbol's next bar; a heartbeat comes by itself."""
        questions = {*boundary.events, *boundary.overrides} - {PolicyEventKind.HEARTBEAT}
        for bit, kind in (EVENTS | OVERRIDES).items():
            if kind in questions:
                self.state["held"][boundary.s] |= bit

    def set_kill_switch(self, on: bool) -> None:
        """The operator's switch.

        Positions are flattened at the next open and entries stay blocked until it is off.
        """
        self.portfolio["kill"][0] = int(on)
        self.portfolio["kill_seen"][0] = 0

    def rows_from(self, start: int) -> dict[str, npt.NDArray[Any]]:
        """What the engine keeps of the validated rows from `start` on, by name; see `take_rows`."""
        rows = slice(start, self.t)
        return {
            "equity": self._equity[rows].copy(),
            "gross": self._gross[rows].copy(),
            "flags": self._flags[rows].copy(),
        }

    def take_rows(self, start: int, kept: Mapping[str, npt.NDArray[Any]]) -> None:
        """Take back rows that another engine kept; they come before `t`."""
        for name, table in (("equity", self._equity), ("gross", self._gross), ("flags", self._flags)):
            table[start : start + kept[name].shape[0]] = kept[name]

    def is_halted(self) -> bool:
        """Whether the envelope blocks entries at the close of the last validated bar."""
        port = self.portfolio[0]
        t = self.t - 1
        return bool(port["kill"] == 1 or port["halt_day"] >= port["day"] or port["halt_until"] >= t)

    def snapshot(self) -> dict[str, Any]:
        """Everything that decides the future of the engine, copied; see `restore`."""
        return {
            "t": self.t,
            "state": self.state.copy(),
            "portfolio": self.portfolio.copy(),
            "tags": self.tags_in_force(),
            "installed": self._installed,
            "entries": {s: dict(entry) for s, entry in self._entries.items()},
            "columns": self.columns.copy(),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Continue from a snapshot: the same bars give the same future."""
        self.t = saved["t"]
        self.state = saved["state"].copy()
        self.portfolio = saved["portfolio"].copy()
        self._tags = dict(saved["tags"])
        self._installed = saved["installed"]
        self._entries = {s: dict(entry) for s, entry in saved["entries"].items()}
        self.columns = saved["columns"].copy()
