"""Where each symbol stood at each close for a setup that is true there: what the account of signals reads.

Changes only are kept: what the engine says of a bar, and how each evaluation ended. A plan is in force from
the bar after the one on which it was frozen.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from schemas.policy import FrozenPolicy
from schemas.reflection import PolicyLevelReflectionResult
from schemas.snapshot import SetupCount
from schemas.state import Stateful
from schemas.tick_validation import TickValidationEvent
from schemas.vocabulary import (
    Direction,
    JudgeDecision,
    PolicyState,
    ReflectionStatus,
    Severity,
    TickEventKind,
)
from services.journal.chain import JournalRow
from trading_core.kernel.state_machine import STATES
from trading_core.trigger_engine import Advance, TriggerEngine

EntryRule = tuple[str, str]  # playbook and direction
JUDGE = "judge_refused"
REFUSING = (Severity.MAJOR, Severity.BLOCKER)
ENDED = {
    TickEventKind.ENTRY_FILLED: "filled",
    TickEventKind.POLICY_EXPIRED: "expired",
    TickEventKind.INVALIDATION_HIT: "invalidated",
    TickEventKind.ORDER_REFUSED: "order_refused",
}
HELD = {
    PolicyState.IDLE: "",
    PolicyState.THESIS_ARMED: "armed",
    PolicyState.COOLDOWN: "cooldown",
    PolicyState.INVALIDATED: "invalidated",
}
IN_POSITION = "in_position"
_setup_count = lru_cache(maxsize=256)(SetupCount.trust)  # most are those of the snapshot before


@dataclass(frozen=True, slots=True)
class Standing:
    """What meets a setup that is true at a close.

    Attributes:
        held: why no setup is looked at: `armed`, `in_position`, `cooldown`, `invalidated`; empty: it is.
        plan: entry rule of the plan in force; None without one.
        setup: what that plan waits for.
        ended: how the last plan, or the last evaluation, ended; empty before the first.
        regime: `trend/volatility/structure` at the last evaluation; empty before the first.
        refused: entry rules whose plan the last evaluation refused or could not offer, with the code.
    """

    held: str = ""
    plan: EntryRule | None = None
    setup: str = ""
    ended: str = ""
    regime: str = ""
    refused: tuple[tuple[str, str, str], ...] = ()


class SignalLog(Stateful):
    """Log of one run.

    Attributes:
        standings: each once.
        marks: by symbol: row from which on a standing holds, and its place in `standings`; rows ascend.
        armed: by symbol: row at whose close a thesis was armed, and its entry rule.
        refusals: orders refused or taken back, by reason.
        tried: by playbook and direction: plans put in force, and how many of them met their setup.
        unmet: by symbol: the last plan put in force, while its setup has not been true.
        first_row: rows before it are history, on which nothing is decided.
    """

    STATE: ClassVar = {
        "standings": list[Standing],
        "marks": dict[str, list[tuple[int, int]]],
        "armed": dict[str, list[tuple[int, str, str]]],
        "refusals": Counter[str],
        "tried": dict[str, dict[Direction, tuple[int, int]]],
        "unmet": dict[str, str],
        "first_row": int,
    }
    REBUILT = frozenset(
        {"_engine", "_in_force", "_takers", "_places", "_seen", "_requested", "_refused", "_regimes"}
    )

    def __init__(self, engine: TriggerEngine, in_force: Callable[[int], FrozenPolicy | None]) -> None:
        """An empty log of an engine; `in_force` gives the policy of a symbol column."""
        self._engine = engine
        self._in_force = in_force
        self._places: dict[Standing, int] = {}
        self._seen: list[tuple[int, ...]] = [()] * len(engine.bars.symbols)  # policy and state of each
        self._requested: dict[str, tuple[EntryRule, str]] = {}
        self._refused: dict[str, dict[EntryRule, str]] = {}
        self._regimes: dict[str, str] = {}
        self.standings: list[Standing] = []
        self.marks: dict[str, list[tuple[int, int]]] = {}
        self.armed: dict[str, list[tuple[int, str, str]]] = {}
        self.refusals: Counter[str] = Counter()
        self.tried: dict[str, dict[Direction, tuple[int, int]]] = {}
        self.unmet: dict[str, str] = {}
        self.first_row = 0
        self._takers = {
            "policy_snapshot": self._snapshot,
            "policy_proposal": self._proposal,
            "policy_reflection": self._reflection,
            "boundary_verdict": self._verdict,
            "policy_evaluation": self._evaluation,
            "policy_frozen": self._frozen,
            "order_refused": self._refusal,
        }

    def begin(self) -> None:
        """Before bars are validated: what the policy loop has changed since holds from the next row on."""
        for s, code in enumerate(self._codes()):
            if code == self._seen[s]:
                continue
            state, policy = self._engine.state[s], self._in_force(s)
            name, held = STATES[int(state["state"])], int(state["direction"]) != 0
            self._mark(
                self._engine.bars.symbols[s],
                self._engine.t,
                held=IN_POSITION if held else HELD[name],
                plan=None if policy is None else (policy.playbook_id, policy.proposal.direction),
                setup="" if policy is None else policy.proposal.setup,
            )

    def observe(self, step: Advance) -> None:
        """What validated bars did: theses armed, changes of state, and plans that ended."""
        last: dict[str, int] = {}
        ended: dict[str, str] = {}
        for event in step.events:
            if event.symbol is None:
                continue
            row = last[event.symbol] = int(np.searchsorted(self._engine.bars.times, event.bar_label))
            if event.kind in ENDED:
                ended[event.symbol] = ENDED[event.kind]
            elif event.kind is TickEventKind.THESIS_ARMED:
                rule = event.detail["playbook_id"], event.detail["direction"]
                self.armed.setdefault(event.symbol, []).append((row, *rule))
                if self.unmet.get(event.symbol) == event.detail["policy_id"]:
                    del self.unmet[event.symbol]
                    self._count(*rule, armed=1)
            elif event.kind is TickEventKind.STATE_TRANSITION:
                self._move(event, row)
        for symbol, row in last.items():
            s = self._engine.bars.symbols.index(symbol)
            if self._engine.state["policy"][s] < 0 and self._standing(symbol).plan is not None:
                how = ended.get(symbol, "halted")
                self._mark(symbol, row if how == "expired" else row + 1, plan=None, setup="", ended=how)
        self._seen = self._codes()

    def _move(self, event: TickValidationEvent, row: int) -> None:
        """A change of state; a close at which a thesis or a position ended still belongs to it."""
        source, target = PolicyState(event.detail["from"]), PolicyState(event.detail["to"])
        symbol, held = str(event.symbol), HELD.get(target, IN_POSITION)
        if target is PolicyState.COOLDOWN:
            self._mark(symbol, row, held=IN_POSITION)
            row += 1
        elif target is PolicyState.INVALIDATED and source is not PolicyState.THESIS_ARMED:
            held = IN_POSITION
        elif source is PolicyState.THESIS_ARMED and held != IN_POSITION:
            self._mark(symbol, row, held=HELD[source])
            row += 1
        self._mark(symbol, row + (target is PolicyState.THESIS_ARMED), held=held)

    def add(self, row: JournalRow, payload: Mapping[str, Any]) -> None:
        """Take one row of the journal; only those of evaluations count."""
        if row.kind in self._takers:
            self._takers[row.kind](str(row.symbol), payload)

    def _snapshot(self, symbol: str, payload: Mapping[str, Any]) -> None:
        regime = payload["snapshot"].regime
        self._regimes[symbol] = "" if regime is None else f"{regime.labels.key}/{regime.labels.structure}"

    def _proposal(self, symbol: str, payload: Mapping[str, Any]) -> None:
        if payload["round"] == 0:
            self._refused[symbol] = {}
        for base in payload["passed_over"]:
            rule = base.proposal.playbook_id, base.proposal.direction
            self._refused[symbol].setdefault(rule, base.codes[0])
        self._requested.pop(symbol, None)
        if (plan := payload["proposal"]) is not None:
            self._requested[symbol] = (plan.playbook_id, plan.direction), payload["proposal_hash"]

    def _reflection(self, symbol: str, payload: Mapping[str, Any]) -> None:
        result = payload["result"]
        if symbol not in self._requested or not isinstance(result, PolicyLevelReflectionResult):
            return
        rule, found = self._requested[symbol][0], self._refused[symbol]
        if result.status is ReflectionStatus.PASS:
            found.pop(rule, None)
        else:
            found[rule] = next(
                (finding.code for finding in result.findings if finding.severity in REFUSING), "own"
            )

    def _verdict(self, symbol: str, payload: Mapping[str, Any]) -> None:
        rule, request = self._requested.get(symbol, (None, None))
        refused = payload["verdict"].decision is not JudgeDecision.APPROVE
        if rule is not None and refused and request == payload["proposal_hash"]:
            self._refused[symbol].setdefault(rule, JUDGE)

    def _evaluation(self, symbol: str, payload: Mapping[str, Any]) -> None:
        refused = self._refused.pop(symbol, {})
        self._mark(
            symbol,
            self._engine.t,
            ended=payload["outcome"],
            regime=self._regimes.pop(symbol, ""),
            refused=tuple((*rule, code) for rule, code in sorted(refused.items())),
        )

    def _frozen(self, symbol: str, payload: Mapping[str, Any]) -> None:
        policy = payload["policy"]
        self.unmet[symbol] = payload["policy_id"]
        self._count(policy.playbook_id, policy.proposal.direction, plans=1)

    def _count(self, playbook: str, direction: Direction, plans: int = 0, armed: int = 0) -> None:
        tried = self.tried.setdefault(playbook, {})
        before = tried.get(direction, (0, 0))
        tried[direction] = before[0] + plans, before[1] + armed

    def setups(self) -> tuple[SetupCount, ...]:
        """What became of the plans so far, by entry rule, in the order of their names."""
        return tuple(
            _setup_count(playbook_id=playbook, direction=direction, plans=plans, armed=armed)
            for playbook, found in sorted(self.tried.items())
            for direction, (plans, armed) in sorted(found.items())
        )

    def _refusal(self, symbol: str, payload: Mapping[str, Any]) -> None:
        self.refusals[payload["reason"]] += 1

    def _codes(self) -> list[tuple[int, ...]]:
        state = self._engine.state
        return [*zip(state["policy"].tolist(), state["state"].tolist(), strict=True)]

    def _standing(self, symbol: str) -> Standing:
        marks = self.marks.get(symbol)
        return self.standings[marks[-1][1]] if marks else Standing()

    def _mark(self, symbol: str, row: int, **changes: Any) -> None:
        """Change what holds from a row on; rows that are behind already stay as they are."""
        before = self._standing(symbol)
        if all(getattr(before, name) == value for name, value in changes.items()):
            return
        after = replace(before, **changes)
        if len(self._places) != len(self.standings):  # after a restore
            self._places = {standing: place for place, standing in enumerate(self.standings)}
        place = self._places.setdefault(after, len(self.standings))
        if place == len(self.standings):
            self.standings.append(after)
        marks = self.marks.setdefault(symbol, [])
        if marks and marks[-1][0] >= row:
            row = marks.pop()[0]
        marks.append((row, place))
