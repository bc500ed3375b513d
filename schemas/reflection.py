"""Contracts of both reflections: requests, findings, verdict and report (seed 002).

The names and fields of the seed are kept; typed findings stand beside the seed's readable lists, and
everything that is measured rather than decided (latency) is telemetry and never hashed.
"""

from typing import ClassVar, Literal, Self, get_args

from pydantic import Field, model_validator

from schemas.contract import FINITE, Contract
from schemas.invocation import ReflectionInvocationMeta
from schemas.no_learn import NoLearnZone
from schemas.playbook import LONGEST_HORIZON, PlaybookDefinition
from schemas.policy import FrozenPolicy, PolicyAmendment
from schemas.proposal import PolicyProposal
from schemas.settings.bounds import LARGEST_QUOTA
from schemas.snapshot import MemoryBaseRates, PolicySnapshot
from schemas.vocabulary import (
    CheckName,
    InvocationOutcome,
    PolicyState,
    ReflectionStatus,
    Severity,
)

Bucket = Literal["winners", "losers", "failures"]
BUCKETS: tuple[Bucket, ...] = get_args(Bucket)
DIFFERENT, BELOW_ZERO = 0.4, 0.5  # probabilities above which both questions are answered with yes


class Remedy(Contract):
    """What would satisfy a finding: this field of the proposal, at most or at least this value."""

    field: str
    op: Literal["at_most", "at_least", "equals"]
    value: float | int | str


class Finding(Contract):
    """One typed finding of one check. `code` is stable; `message` is for people."""

    check: CheckName
    code: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    severity: Severity
    message: str
    evidence: tuple[str, ...] = ()
    remedy: Remedy | None = None


class MemoryCase(Contract):
    """One retrieved episode with its distance to the query, rounded to 1e-9."""

    model_config = FINITE

    episode_id: str
    symbol: str
    playbook_id: str
    direction: Literal["long", "short"]
    r: float
    distance: float = Field(ge=0)
    failure_mode: str | None = None
    known_at: int


class LocalEstimate(Contract):
    """What trades near one fingerprint are expected to bring, in R, with a 90 % band.

    `basis`: the cases of the plan's own rules, or the residuals of all rules of the run around them.
    """

    model_config = FINITE

    basis: Literal["own", "pooled"]
    n: int = Field(ge=0, description="cases behind it")
    mean_r: float
    lower_r: float
    upper_r: float
    departs: float = Field(ge=0, le=1, description="probability that this part earns less than the rest")
    below_zero: float = Field(ge=0, le=1, description="probability that less than nothing is earned here")
    unseen_r: float | None = Field(
        default=None, ge=0, description="a departure in a third of the cases that is smaller stays unseen"
    )

    @property
    def contradicts(self) -> bool:
        """Whether it speaks against a plan: it is different here, and below zero here."""
        return self.departs > DIFFERENT and self.below_zero > BELOW_ZERO


class MemorySummary(Contract):
    """Bounded result of one contrastive retrieval. `insufficient` names the buckets that could not be filled.

    Base rates come from the whole eligible population (same playbook and direction, known at the clock),
    never from the retrieved cases. At most half of a bucket's quota was entered on one day. `degraded` names
    why nothing was retrieved although something may be known.
    """

    model_config = FINITE

    known_at: int
    winners: tuple[MemoryCase, ...] = Field(default=(), max_length=LARGEST_QUOTA)
    losers: tuple[MemoryCase, ...] = Field(default=(), max_length=LARGEST_QUOTA)
    failures: tuple[MemoryCase, ...] = Field(default=(), max_length=LARGEST_QUOTA)
    base_rates: MemoryBaseRates
    insufficient: tuple[Bucket, ...] = ()
    estimates: tuple[LocalEstimate, ...] = ()
    degraded: Literal["over_budget"] | None = None

    @model_validator(mode="after")
    def _comes_from_one_retrieval(self) -> Self:
        for name, sign in (("winners", 1), ("losers", -1), ("failures", -1)):
            _refuse_bucket(name, getattr(self, name), self.known_at, sign)
        cases = self.winners + self.losers + self.failures
        if len({case.direction for case in cases}) > 1:
            raise ValueError("cases are long and short: one retrieval asks for one direction")
        books = sorted({case.playbook_id for case in cases})
        if len(books) > 1:
            raise ValueError(
                f"cases are of {', '.join(map(repr, books))}: one retrieval asks for one playbook"
            )
        if self.degraded is not None and cases:
            raise ValueError(
                f"degraded {self.degraded!r} says that nothing was retrieved, but there are cases"
            )
        won = {case.episode_id for case in self.winners}
        lost = {case.episode_id for case in self.losers + self.failures}
        if won & lost:
            raise ValueError(f"episode {min(won & lost)!r} is among the winners and among the losers")
        for name, ids in (("winners", won), ("losers", lost)):
            known = getattr(self.base_rates, name)
            if len(ids) > known:
                raise ValueError(
                    f"{len(ids)} {name} are given, base_rates.{name} says {known}: it counts all of them"
                )
        for name in self.insufficient:
            if self.insufficient.count(name) > 1:
                raise ValueError(f"insufficient holds {name!r} twice")
        return self


def _refuse_bucket(name: str, cases: tuple[MemoryCase, ...], known_at: int, sign: int) -> None:
    """Refuse a bucket that no retrieval at `known_at` fills; every R in it has `sign`."""
    seen: set[str] = set()
    farthest = 0.0
    for place, case in enumerate(cases):
        where = f"{name}[{place}]"
        if case.known_at > known_at:
            raise ValueError(f"{where}.known_at {case.known_at} lies after known_at {known_at} of the memory")
        if case.r * sign <= 0:
            side = "above" if sign > 0 else "below"
            raise ValueError(f"{where}.r {case.r!r}: {name} have an R {side} zero")
        if case.distance < farthest:
            raise ValueError(
                f"{where}.distance {case.distance!r} is below the one before: the nearest comes first"
            )
        if case.episode_id in seen:
            raise ValueError(f"{where}.episode_id {case.episode_id!r} is in {name} twice")
        seen.add(case.episode_id)
        farthest = case.distance


class InvariantContext(Contract):
    """The deterministic guardrails in force at the boundary."""

    model_config = FINITE
    sparse_fields: ClassVar = frozenset({"allows_own_plans"})

    kill_switch: bool = False
    halted: bool = False
    allowed_symbols: tuple[str, ...] = ()
    allowed_directions: tuple[Literal["long", "short"], ...] = ("long", "short")
    allowed_playbooks: tuple[str, ...] = ()
    max_risk_fraction: float = Field(default=0.01, gt=0, le=1)
    max_gross_exposure: float = Field(default=1.0, gt=0)
    gross_exposure: float = Field(default=0.0, ge=0)
    max_horizon_bars: int = Field(default=LONGEST_HORIZON, ge=1)
    max_activation_window_bars: int = Field(default=10, ge=1)
    max_staleness_bars: int = Field(default=2, ge=0)
    min_reward_to_risk: float = Field(default=0.8, ge=0)
    cost_bps_per_side: float = Field(default=7.0, ge=0)
    spread_bps: float = Field(default=0.0, ge=0, description="quoted spread of the market")
    tick_size: float = Field(default=0.0, ge=0, le=1e9, description="grid on which levels trade; 0: none")
    no_learn_zones: tuple[NoLearnZone, ...] = ()
    allows_own_plans: bool = Field(
        default=True, description="whether plans with their own rules need not be among allowed_playbooks"
    )


class PolicyLevelReflectionRequest(Contract):
    """Everything the four checks need; it can be stored and read back as JSON.

    `memory` None means that nothing was retrieved (the finding then says `insufficient`); the service fills
    it after the cheap checks have passed. `previous` is the policy frozen before, if any.
    """

    snapshot: PolicySnapshot
    proposal: PolicyProposal
    playbook: PlaybookDefinition
    state: PolicyState
    memory: MemorySummary | None = None
    invariants: InvariantContext

    @model_validator(mode="after")
    def _is_of_one_boundary(self) -> Self:
        _refuse_other_guardrails(self.snapshot, self.invariants)
        if self.state is not self.snapshot.state:
            raise ValueError(f"state {self.state.value} is not snapshot.state {self.snapshot.state.value}")
        version, design = (self.playbook.id, self.playbook.version), self.playbook.expectation
        for place, seen in enumerate(self.snapshot.expectations):
            is_measured = (design.source, seen.prior.source) == ("prior", "measured")
            is_version = (seen.playbook_id, seen.playbook_version) == version
            if is_version and seen.prior != design and not is_measured:
                raise ValueError(
                    f"snapshot.expectations[{place}].prior is not playbook.expectation of {version[0]!r} "
                    f"version {version[1]}: one version has one design"
                )
        if self.memory is not None:
            self._refuse_other_memory(self.memory)
        return self

    def _refuse_other_memory(self, memory: MemorySummary) -> None:
        """Refuse a memory of another moment, playbook or population.

        Of another direction it may be: who turns a plan round gets a verdict on it.
        """
        now, known = self.snapshot.known_at, self.snapshot.base_rates
        if memory.known_at > now:
            raise ValueError(f"memory.known_at {memory.known_at} lies after snapshot.known_at {now}")
        for name in BUCKETS:
            for place, case in enumerate(getattr(memory, name)):
                if case.playbook_id != self.playbook.id:
                    raise ValueError(
                        f"memory.{name}[{place}].playbook_id {case.playbook_id!r} is not playbook.id "
                        f"{self.playbook.id!r}: a retrieval asks for cases of the plan's playbook"
                    )
        for count in ("population", "winners", "losers"):
            own, of_all = getattr(memory.base_rates, count), getattr(known, count)
            if own > of_all:
                raise ValueError(
                    f"memory.base_rates.{count} {own} is more than snapshot.base_rates.{count} {of_all}, "
                    "which counts every playbook"
                )


def _refuse_other_guardrails(snapshot: PolicySnapshot, invariants: InvariantContext) -> None:
    """Refuse guardrails that saw another account than the snapshot."""
    for name in ("kill_switch", "halted", "gross_exposure"):
        here, there = getattr(invariants, name), getattr(snapshot.risk, name)
        if here != there:
            raise ValueError(
                f"invariants.{name} {here!r} is not snapshot.risk.{name} {there!r}: both are the account's "
                "at the decision bar"
            )


class PolicyAmendmentRequest(Contract):
    """Everything the checks of an amendment need.

    `policy` is the one that the amendment names, None where it is not known; `playbook` the active version of
    its playbook, None where there is none any more.
    """

    snapshot: PolicySnapshot
    amendment: PolicyAmendment
    policy: FrozenPolicy | None
    playbook: PlaybookDefinition | None
    invariants: InvariantContext

    @model_validator(mode="after")
    def _is_of_one_boundary(self) -> Self:
        _refuse_other_guardrails(self.snapshot, self.invariants)
        return self


class PolicyLevelReflectionResult(Contract):
    """Verdict of the fast reflection on exactly one proposal or amendment under exactly one snapshot.

    `proposal_hash` and `playbook_hash` name the amendment and the playbook of its policy, if it is about one.
    """

    telemetry_fields: ClassVar[frozenset[str]] = frozenset({"latency_ms"})

    status: ReflectionStatus
    coherence_findings: tuple[str, ...] = ()
    invariant_findings: tuple[str, ...] = ()
    memory_findings: tuple[str, ...] = ()
    expectation_findings: tuple[str, ...] = ()
    requested_revisions: tuple[str, ...] = ()
    latency_ms: int = Field(default=0, ge=0)
    findings: tuple[Finding, ...] = ()
    snapshot_hash: str
    proposal_hash: str
    playbook_hash: str
    prompt_hash: str | None = Field(default=None, description="of the template that a model was asked with")
    meta: ReflectionInvocationMeta
    checks_run: tuple[CheckName, ...] = ()
    memory: MemorySummary | None = None
    deferred: tuple[str, ...] = Field(default=(), description="needs handed to the next high-level request")
    comment: str | None = Field(
        default=None, description="of a model, in its own words: not checked, and read by nobody"
    )

    @property
    def awaited_reader(self) -> bool:
        """Whether a second reader was asked, or was to be and could not."""
        return self.meta.tier == "consolidated" or self.meta.outcome is InvocationOutcome.DEGRADED
