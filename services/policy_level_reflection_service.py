"""The fast reflection: one verdict on one proposal or amendment under one snapshot, before anything freezes.

Order: invariants, coherence, memory, expectation, critics of the caller's own, then the optional model. A
broken invariant ends it at once, before any dearer work. The service holds a reader of memory and nothing
that writes; what a check does not find in the request it does not know. An exception in a check is not
handled here: the policy loop fails closed on it.

Time is measured and never decides what the deterministic checks say; only the model has a deadline.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil

from prompts import load_prompt
from schemas.errors import ConfigError, InvariantViolation
from schemas.invocation import ReflectionInvocationMeta
from schemas.reflection import (
    Finding,
    MemorySummary,
    PolicyAmendmentRequest,
    PolicyLevelReflectionRequest,
    PolicyLevelReflectionResult,
)
from schemas.settings import ReflectionSettings
from schemas.vocabulary import CheckName, InvocationOutcome, ReflectionStatus
from services.model_calls.asking import NoReply, ask
from services.model_calls.language_model import LanguageModel
from services.model_calls.record import LATE
from services.model_calls.wording import Wordings
from services.policy_checks.amendment import check_amendment
from services.policy_checks.coherence import check_coherence
from services.policy_checks.consolidation import (
    Consolidation,
    consolidation_question,
    grounds_of,
    weigh_reply,
)
from services.policy_checks.expectation import check_expectation
from services.policy_checks.findings import own_findings, readable, requested_revisions, status_of
from services.policy_checks.invariants import check_invariants
from services.policy_checks.memory import check_memory, needs_for_the_slow_loop
from services.policy_checks.plan_levels import read_levels
from services.ports import Critic, MemoryQuery, MemoryReader
from trading_core.rules import LintFinding

PROMPT = "policy_level_reflection"
# The longest reply with a comment that is kept has about 3,100 characters: five needs of 300, twenty ids,
# eight objections, 300 of a comment. At two characters a token, as the budget counts, it fits. A model that
# thinks spends it on that as well, and a reply cut there counts for nothing.
MAX_TOKENS = 1_600
NS_PER_MS = 1_000_000


@dataclass(frozen=True)
class _Subject:
    """What a verdict is bound to."""

    snapshot_hash: str
    proposal_hash: str
    playbook_hash: str


@dataclass(frozen=True)
class _Checked:
    """What the deterministic checks found."""

    findings: tuple[Finding, ...]
    checks: tuple[CheckName, ...]
    memory: MemorySummary | None = None
    deferred: tuple[str, ...] = ()


def _demand_model_of_mode(mode: str, model: LanguageModel | None) -> None:
    if (model is not None) != (mode == "full"):
        given = "no model" if model is None else "a model"
        raise ConfigError(f"reflection.mode is {mode!r} but {given} was given: 'full' needs one")


class PolicyLevelReflectionService:
    """Reflects on proposals and amendments."""

    def __init__(
        self,
        settings: ReflectionSettings,
        *,
        memory: MemoryReader | None = None,
        model: LanguageModel | None = None,
        timer: Callable[[], int] = time.perf_counter_ns,
        recorded: bool = False,
        market_waits: bool = False,
        wordings: Wordings | None = None,
        critics: Sequence[Critic] = (),
    ) -> None:
        """Take readers only.

        Args:
            settings: mode and thresholds.
            memory: contrastive memory, read once for each proposal that passed the invariants.
            model: for mode `full`, and for no other.
            timer: monotonic ns, for telemetry and for what is left of the model's deadline.
            recorded: the model keeps a record of every outcome, one of them that no time was left to ask it;
                it is told even then, so that a replay on another machine ends there too.
            market_waits: no bar comes while the model thinks, as in a backtest.
            wordings: how questions word their data; None: everything by its name.
            critics: checks of the caller's own, asked in this order.

        Raises:
            ConfigError: a model without mode `full`, or mode `full` without a model.
        """
        _demand_model_of_mode(settings.mode, model)
        self._settings = settings
        self._memory = memory
        self._model = model
        self._prompt = load_prompt(PROMPT)
        self._timer = timer
        self._recorded = recorded
        self._market_waits = market_waits
        self._wordings = wordings or Wordings()
        self._critics = tuple(critics)

    async def reflect(
        self, request: PolicyLevelReflectionRequest, *, source: str, lint: Sequence[LintFinding] = ()
    ) -> PolicyLevelReflectionResult:
        """The verdict on exactly this request.

        Args:
            request: snapshot, proposal, playbook, memory and guardrails.
            source: the policy event that opened the boundary; it chooses the deadline of a model.
            lint: what the rule linter saw on past bars.

        Raises:
            InvariantViolation: reflection is switched off, or memory was asked for the future.
        """
        self._refuse_when_off()
        start = self._timer()
        checked = self._check(request, lint)
        added, meta = Consolidation(()), self._meta(source)
        # Where the rules send a plan back, or leave nothing that a reply may rest on, none could change it.
        passes = status_of(checked.findings) is ReflectionStatus.PASS
        if self._model is not None and passes and grounds_of(request, checked.findings).exist:
            added, meta = await self._consolidate(self._model, request, checked.findings, meta, start)
        elapsed_ms = self._elapsed_ms(start)
        hashes = (request.snapshot.content_hash, request.proposal.content_hash, request.playbook.content_hash)
        return self._result(
            _Subject(*hashes), checked, added, meta.model_copy(update={"latency_ms": elapsed_ms})
        )

    def reflect_amendment(
        self, request: PolicyAmendmentRequest, *, source: str
    ) -> PolicyLevelReflectionResult:
        """The verdict on exactly this amendment, by rules alone: nothing waits here, and no model is asked.

        Raises:
            InvariantViolation: reflection is switched off.
        """
        self._refuse_when_off()
        start = self._timer()
        findings, checks = check_amendment(request)
        elapsed_ms = self._elapsed_ms(start)
        return self._result(
            _Subject(
                request.snapshot.content_hash,
                request.amendment.content_hash,
                "" if request.policy is None else request.policy.playbook_hash,
            ),
            _Checked(findings, checks),
            Consolidation(()),
            self._meta(source).model_copy(update={"latency_ms": elapsed_ms}),
        )

    def _refuse_when_off(self) -> None:
        if self._settings.mode == "off":
            raise InvariantViolation("reflection.mode is 'off': nothing may be reflected and called passed")

    def _check(self, request: PolicyLevelReflectionRequest, lint: Sequence[LintFinding]) -> _Checked:
        """The deterministic checks in order; nothing beyond the invariants once one of them is broken."""
        broken = check_invariants(request)
        if status_of(broken) is ReflectionStatus.BLOCK:
            return _Checked(broken, (CheckName.INVARIANT,), request.memory)
        levels = read_levels(request)
        coherence = check_coherence(request, levels, lint)
        memory = request.memory or self._retrieve(request)
        remembered = check_memory(request, memory)
        expectation = check_expectation(request, levels, self._settings)
        rules = (CheckName.INVARIANT, CheckName.COHERENCE, CheckName.MEMORY, CheckName.EXPECTATION)
        return _Checked(
            broken + coherence + remembered + expectation + own_findings(self._critics, request),
            (*rules, CheckName.OWN) if self._critics else rules,
            memory,
            needs_for_the_slow_loop(remembered, request),
        )

    def _retrieve(self, request: PolicyLevelReflectionRequest) -> MemorySummary | None:
        snapshot = request.snapshot
        if self._memory is None or snapshot.regime is None:
            return None
        query = MemoryQuery(
            symbol=snapshot.symbol,
            playbook_id=request.playbook.id,
            direction=request.proposal.direction,
            fingerprint=snapshot.regime.fingerprint,
            playbook_hash=request.playbook.content_hash,
        )
        return self._memory.retrieve(query, snapshot.known_at)

    async def _consolidate(
        self,
        model: LanguageModel,
        request: PolicyLevelReflectionRequest,
        findings: tuple[Finding, ...],
        meta: ReflectionInvocationMeta,
        start: int,
    ) -> tuple[Consolidation, ReflectionInvocationMeta]:
        """Ask the model within what is left of its deadline; whatever fails leaves the rules' verdict."""
        deadline_ms = self._settings.deadline_ms(
            meta.source, request.snapshot.timeframe, market_waits=self._market_waits
        )
        left_ms = deadline_ms - self._elapsed_ms(start)
        if left_ms <= 0 and not self._recorded:
            return Consolidation(()), _degrade(meta, LATE)
        wording = self._wordings.of(request.snapshot)
        reply = await ask(
            model,
            system=self._prompt.system,
            prompt=consolidation_question(self._prompt, request, findings, wording),
            max_tokens=MAX_TOKENS,
            deadline_ms=left_ms,
        )
        if isinstance(reply, NoReply):
            return Consolidation(()), _degrade(meta, LATE if reply.kind == LATE else f"llm_{reply.kind}")
        symbols = (*self._wordings.known, *wording.symbols.values())
        added = weigh_reply(reply.text, request, findings, symbols)
        if added.refused is not None:
            return added, _degrade(meta, added.refused)
        return added, meta.model_copy(update={"tier": "consolidated"})

    def _result(
        self,
        subject: _Subject,
        checked: _Checked,
        added: Consolidation,
        meta: ReflectionInvocationMeta,
    ) -> PolicyLevelReflectionResult:
        findings = checked.findings + added.findings
        consolidated = (CheckName.CONSOLIDATION,) if added.findings else ()
        return PolicyLevelReflectionResult.trust(
            status=status_of(findings),
            coherence_findings=readable(findings, CheckName.COHERENCE),
            invariant_findings=readable(findings, CheckName.INVARIANT),
            memory_findings=readable(findings, CheckName.MEMORY),
            expectation_findings=readable(findings, CheckName.EXPECTATION),
            requested_revisions=requested_revisions(findings),
            latency_ms=ceil(meta.latency_ms),
            findings=findings,
            snapshot_hash=subject.snapshot_hash,
            proposal_hash=subject.proposal_hash,
            playbook_hash=subject.playbook_hash,
            prompt_hash=None if self._model is None else self._prompt.hash,
            meta=meta,
            checks_run=checked.checks + consolidated,
            memory=checked.memory,
            deferred=checked.deferred + added.deferred,
            comment=added.comment,
        )

    def _meta(self, source: str) -> ReflectionInvocationMeta:
        return ReflectionInvocationMeta.trust(
            cadence="policy_loop", source=source, outcome=InvocationOutcome.RAN
        )

    def _elapsed_ms(self, start: int) -> float:
        return (self._timer() - start) / NS_PER_MS


def _degrade(meta: ReflectionInvocationMeta, reason: str) -> ReflectionInvocationMeta:
    return meta.model_copy(update={"outcome": InvocationOutcome.DEGRADED, "skip_reason": reason})
