"""Protocols of the services' collaborators.

Implemented in `services`, `agents` and `worker`, satisfied by shape.

The fast path receives readers only: they have no method that writes, so a write neither type-checks nor
runs (R8).
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from schemas.background import DecisionBackground
from schemas.episode import Episode
from schemas.evidence_plan import EvidenceCall, EvidencePlan, RecommendationEvidence
from schemas.invocation import ReflectionInvocationMeta
from schemas.judge import BoundaryVerdict, ReplanVerdict
from schemas.playbook import PlaybookDefinition, PlaybookVersion
from schemas.policy import FrozenPolicy
from schemas.proposal import PolicyProposal
from schemas.reflection import (
    Finding,
    InvariantContext,
    MemorySummary,
    PolicyAmendmentRequest,
    PolicyLevelReflectionRequest,
    PolicyLevelReflectionResult,
)
from schemas.regime import RegimeLabels
from schemas.slow_reflection import HighLevelReflectionReport, HighLevelReflectionRequest
from schemas.snapshot import ExpectationSummary, MemoryBaseRates, PolicySnapshot
from schemas.strategist_answer import StrategistAnswer
from schemas.tool import ToolDefinition, ToolReply
from schemas.trials import TrialCounts
from schemas.vocabulary import Direction


class Clock(Protocol):
    """The present of a run or of a worker."""

    @property
    def now(self) -> int:
        """Ns since 1970, UTC."""
        ...


@dataclass(frozen=True)
class MemoryQuery:
    """What a proposal looks like to memory; `fingerprint` holds five ranks in [0, 1].

    `playbook_hash` is the version's: its cases are those of versions whose trades end alike.
    """

    symbol: str
    playbook_id: str
    direction: Direction
    fingerprint: tuple[float, ...]
    playbook_hash: str = ""


class MemoryReader(Protocol):
    """Read-only contrastive memory; each read passes the clock."""

    def retrieve(self, query: MemoryQuery, known_at: int) -> MemorySummary:
        """Nearest winners, losers and failure patterns known at `known_at`."""
        ...

    def base_rates(self, known_at: int) -> MemoryBaseRates:
        """Counts over the whole eligible population known at `known_at`."""
        ...


class PlaybookReader(Protocol):
    """Read-only view of the playbook registry."""

    def active(self) -> tuple[PlaybookVersion, ...]:
        """Active versions by playbook id."""
        ...

    def get(self, playbook_id: str) -> PlaybookVersion:
        """The active version of one playbook."""
        ...

    def eligible(
        self, labels: RegimeLabels | None, timeframe: str
    ) -> tuple[tuple[PlaybookDefinition, Direction], ...]:
        """Enabled playbooks and directions that these labels allow, by id, long before short."""
        ...


class ExpectationReader(Protocol):
    """Read-only point-in-time expectations."""

    def summary(self, definition: PlaybookDefinition, known_at: int) -> ExpectationSummary:
        """Design prior and resolved trades of one playbook, shrunken together."""
        ...

    def own(self, known_at: int) -> tuple[ExpectationSummary, ...]:
        """The same of every id of plans with their own rules that has traded."""
        ...


@dataclass(frozen=True)
class Revision:
    """What a strategist is told when its proposal was not passed."""

    proposal: PolicyProposal
    findings: tuple[Finding, ...]
    reason: str
    round: int


@dataclass
class RevisionBudget:
    """Revision rounds left at one boundary; one counter shared by reflection and judge."""

    limit: int
    used: int = 0

    def take(self) -> bool:
        """Use one round; False when none is left."""
        if self.used >= self.limit:
            return False
        self.used += 1
        return True


class PlanEnd(StrEnum):
    """How a plan provider's answer ended."""

    PASSED = "passed"
    BLOCKED = "blocked"
    STAND_DOWN = "stand_down"
    NO_PROPOSAL = "no_proposal"


@dataclass(frozen=True)
class PlanRound:
    """One answer of the strategist with the reflection it met; both None where there was no proposal.

    `unusable` says why a proposal could be held to nothing, so that it was sent back before any reflection.
    """

    answer: StrategistAnswer
    request: PolicyLevelReflectionRequest | None = None
    reflection: PolicyLevelReflectionResult | ReflectionInvocationMeta | None = None
    unusable: Finding | None = None


@dataclass(frozen=True)
class Plan:
    """What a plan provider hands to the policy loop: every round, the last one decides."""

    end: PlanEnd
    rounds: tuple[PlanRound, ...]
    reason: str

    @property
    def last(self) -> PlanRound:
        """The deciding round."""
        return self.rounds[-1]

    @property
    def reflected(self) -> PlanRound | None:
        """The last round with a proposal that met a reflection; None without one."""
        met = (
            plan_round
            for plan_round in reversed(self.rounds)
            if plan_round.answer.proposal and plan_round.reflection
        )
        return next(met, None)


# What a model strategist is shown beside a snapshot; None where nothing was gathered for it.
BackgroundReader = Callable[[PolicySnapshot], DecisionBackground | None]


class EventJournal(Protocol):
    """Append-only journal, seen from the services."""

    def append(
        self,
        kind: str,
        *,
        ts_event: int,
        known_at: int,
        symbol: str | None = None,
        payload: dict[str, Any],
        telemetry: dict[str, Any] | None = None,
    ) -> Any:
        """Append one event."""
        ...


class BaseCheck(Protocol):
    """Whether a playbook's own plan can pass now, asked before it is offered."""

    def findings(self, proposal: PolicyProposal, snapshot: PolicySnapshot) -> tuple[Finding, ...]:
        """What would send the plan back, or block it."""
        ...

    def is_over(self, proposal: PolicyProposal, snapshot: PolicySnapshot) -> bool:
        """Whether the invalidation is true at this close, so that the setup has to come back first."""
        ...


class Strategist(Protocol):
    """Answers one snapshot; sees a revision request on rounds after the first."""

    async def answer(self, snapshot: PolicySnapshot, revision: Revision | None) -> StrategistAnswer:
        """A proposal, a held position, a tighter stop, or an abstention."""
        ...


class Critic(Protocol):
    """A check of the caller's own on a proposal, asked after the rules and before a model.

    It adds findings and takes none away: a blocker ends the plan, a major finding sends it back to the
    strategist, a minor one is noted. It is not asked once a rule of the invariants is broken, nor about an
    amendment. What it decides on has to be in the request, or the run cannot be verified.
    """

    def __call__(self, request: PolicyLevelReflectionRequest, /) -> Finding | Iterable[Finding] | None:
        """What it found; None, or nothing in it, where it found nothing."""
        ...


class PlanProvider(Protocol):
    """Strategist and fast reflection as one: nothing leaves it unreflected."""

    async def provide(
        self,
        snapshot: PolicySnapshot,
        invariants: InvariantContext,
        budget: RevisionBudget,
        revision: Revision | None = None,
    ) -> Plan:
        """A reflected plan for one boundary."""
        ...

    def reflect_amendment(
        self, request: PolicyAmendmentRequest
    ) -> PolicyLevelReflectionResult | ReflectionInvocationMeta:
        """The reflection on an amendment; it does not wait, and asks no model."""
        ...


class Judge(Protocol):
    """Decision gate at the policy boundary and over high-level reports."""

    async def validate_boundary(
        self,
        snapshot: PolicySnapshot,
        proposal: PolicyProposal,
        reflection: PolicyLevelReflectionResult | ReflectionInvocationMeta,
        playbook: PlaybookDefinition,
    ) -> BoundaryVerdict:
        """Approve, revise, reject or stand down, with the reflection as evidence.

        `reflection` is an invocation record only when the fast reflection is switched off.
        """
        ...

    def validate_amendment(
        self,
        request: PolicyAmendmentRequest,
        reflection: PolicyLevelReflectionResult | ReflectionInvocationMeta,
    ) -> BoundaryVerdict:
        """The same on a stop move, a keep or a stand-down of a policy that is there."""
        ...

    async def replan(
        self,
        report: HighLevelReflectionReport,
        definitions: tuple[PlaybookDefinition, ...],
        open_experiments: int,
        evidence: Sequence[RecommendationEvidence] = (),
    ) -> ReplanVerdict:
        """Turn a report into typed actions, or hold; report and evidence are data, never a command."""
        ...


class PolicyLoop(Protocol):
    """The policy loop as far as the slow loop changes it."""

    @property
    def policies(self) -> Mapping[str, FrozenPolicy]:
        """Every frozen policy by id."""
        ...

    def replan(self) -> None:
        """Retire every frozen policy; symbols without a position are asked about at their next close."""
        ...

    def retire_playbook(self, playbook_id: str | None) -> tuple[str, ...]:
        """Retire frozen policies of a playbook (None: of all); the symbols that had one."""
        ...


class HighLevelReflection(Protocol):
    """Turns a batch of resolved trades into a report; reads what the request names and writes nothing."""

    async def reflect(
        self,
        request: HighLevelReflectionRequest,
        episodes: Sequence[Episode],
        definitions: Sequence[PlaybookDefinition],
    ) -> HighLevelReflectionReport:
        """The report on a request; `definitions` are the versions now in force."""
        ...

    def by_rules(self) -> "HighLevelReflection":
        """The same reflection without a model."""
        ...


class TrialCounter(Protocol):
    """Counts what a run tries."""

    def count_trials(self, declared: Collection[str]) -> TrialCounts:
        """What was tried so far, the declared hypotheses included."""
        ...


class ReportEvidence(Protocol):
    """Reads what a run knows about the recommendations of a report."""

    async def read(self, report: HighLevelReflectionReport, seen: int) -> tuple[RecommendationEvidence, ...]:
        """What was read about each of them beyond hold, from the run's first `seen` journal rows.

        Nothing known later than the report is in it.
        """
        ...


class ToolProgress(Protocol):
    """Is told how far a tool is."""

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        """What is done, of how much, and what comes next."""
        ...


class ToolHost(Protocol):
    """Tools that read runs and change nothing."""

    async def tools(self) -> tuple[ToolDefinition, ...]:
        """Those that may be called, by name."""
        ...

    async def call(
        self, name: str, arguments: Mapping[str, Any], progress: ToolProgress | None = None
    ) -> ToolReply:
        """The answer of one; a call that cannot be answered is a reply that says what would work.

        `progress` is told where a tool takes long.
        """
        ...


@dataclass(frozen=True)
class EvidenceQuestion:
    """What a planner is asked: the words, and what it may know before it looks.

    `context` has `run_id`, `known_at`, `symbols`, `playbooks`, `regimes`, and what the turns before were
    about (`recent_symbol`, `recent_playbook`, `recent_fill`, `recent_trade`); `turns` are the last ones,
    oldest first.
    """

    text: str
    context: Mapping[str, Any]
    turns: tuple[tuple[str, str], ...] = ()


class EvidencePlanner(Protocol):
    """Says which tools answer a question."""

    async def plan(
        self,
        question: EvidenceQuestion,
        tools: Mapping[str, Sequence[ToolDefinition]],
        earlier: Sequence[EvidenceCall] = (),
    ) -> EvidencePlan:
        """The calls of the first plan, or, after `earlier` ones, those that are still missing.

        `tools` are those that may be called, by client.
        """
        ...


class PinBook(Protocol):
    """Definitions of tools as they were when they were first used, or last accepted."""

    async def pins_of(self, client: str) -> dict[str, ToolDefinition]:
        """The pinned definitions of a client's tools, by name."""
        ...

    async def pin(self, client: str, definitions: Sequence[ToolDefinition]) -> None:
        """Hold on to these definitions; a tool that was pinned before is pinned anew."""
        ...
