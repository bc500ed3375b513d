"""PlanProvider: strategist and fast reflection as one, so that nothing leaves it unreflected.

It runs the policy-level reflection on every proposal before the policy loop may freeze it, cached or fresh,
first or revised. `revise` is a bounded resubmission with the findings; an identical resubmission, or no
round left, is a stand-down; `block` ends the plan. What an answer without a proposal comes to is an amendment
of a policy that is there: the policy loop makes it, and has it reflected on here, too. With reflection
switched off each carries the record that says so.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from schemas.errors import ConfigError
from schemas.invocation import ReflectionInvocationMeta
from schemas.playbook import PlaybookDefinition
from schemas.proposal import PolicyProposal
from schemas.reflection import (
    InvariantContext,
    PolicyAmendmentRequest,
    PolicyLevelReflectionRequest,
    PolicyLevelReflectionResult,
)
from schemas.snapshot import PolicySnapshot
from schemas.strategist_answer import StrategistAnswer
from schemas.vocabulary import InvocationOutcome, PlanKind, ReflectionStatus
from services.context import RunContext
from services.model_calls.language_model import LanguageModel
from services.playbooks.own_plans import playbook_of
from services.policy_checks.findings import unusable
from services.policy_checks.reasons import with_reasons
from services.policy_level_reflection_service import PolicyLevelReflectionService
from services.ports import (
    Critic,
    MemoryReader,
    Plan,
    PlanEnd,
    PlanRound,
    PlaybookReader,
    Revision,
    RevisionBudget,
    Strategist,
)
from trading_core.rules import LintFinding, RuleColumns, lint

Linter = Callable[[PolicySnapshot, PolicyProposal], Sequence[LintFinding]]


def linter(columns: RuleColumns) -> Linter:
    """A linter of proposals on the bars known at their snapshot."""

    def check(snapshot: PolicySnapshot, proposal: PolicyProposal) -> tuple[LintFinding, ...]:
        roles = ("setup", "invalidation", "activation")
        texts = {role: text for role in roles if (text := getattr(proposal, role)) is not None}
        bars = columns.bars
        row = int(bars.close_times.searchsorted(snapshot.known_at, side="right"))
        return tuple(lint(texts, columns, bars.symbols.index(snapshot.symbol), row))

    return check


@dataclass(eq=False)
class ReflectingPlanProvider:
    """The plan provider of backtest and live trading alike.

    Attributes:
        strategist: who proposes.
        reflection: the fast reflection, or None only when it is switched off.
        playbooks: read-only registry.
        linter: checks a proposal's rules against the bars known at the snapshot.
    """

    strategist: Strategist
    reflection: PolicyLevelReflectionService | None
    playbooks: PlaybookReader
    linter: Linter

    async def provide(
        self,
        snapshot: PolicySnapshot,
        invariants: InvariantContext,
        budget: RevisionBudget,
        revision: Revision | None = None,
    ) -> Plan:
        """Answers until one passes, is blocked, or the rounds are used."""
        rounds: list[PlanRound] = []
        while True:
            answer = _with_rationale(await self.strategist.answer(snapshot, revision), snapshot)
            proposal = answer.proposal
            if answer.kind is not PlanKind.PROPOSE or proposal is None:
                rounds.append(PlanRound(answer))
                end = PlanEnd.NO_PROPOSAL if revision is None else PlanEnd.STAND_DOWN
                return Plan(end, tuple(rounds), answer.reason)
            if revision is not None and proposal.content_hash == revision.proposal.content_hash:
                rounds.append(PlanRound(answer))
                unread = f": {revision.reason}" if rounds[-2:-1] and rounds[-2].unusable else ""
                return Plan(PlanEnd.STAND_DOWN, tuple(rounds), f"identical resubmission{unread}")
            try:
                playbook = playbook_of(proposal, self.playbooks)
            except ConfigError as error:
                found = unusable(str(error))
                rounds.append(PlanRound(answer, unusable=found))
                if not budget.take():
                    return Plan(PlanEnd.STAND_DOWN, tuple(rounds), f"no revision left: {error}")
                revision = Revision(proposal, (found,), str(error), budget.used)
                continue
            reflected = await self._reflect(snapshot, invariants, answer, proposal, playbook)
            rounds.append(reflected)
            if not isinstance(reflected.reflection, PolicyLevelReflectionResult):
                return Plan(PlanEnd.PASSED, tuple(rounds), "reflection is switched off")
            if reflected.reflection.status is ReflectionStatus.PASS:
                return Plan(PlanEnd.PASSED, tuple(rounds), "passed")
            reason = "; ".join(finding.code for finding in reflected.reflection.findings)
            if reflected.reflection.status is ReflectionStatus.BLOCK:
                return Plan(PlanEnd.BLOCKED, tuple(rounds), reason)
            if not budget.take():
                return Plan(PlanEnd.STAND_DOWN, tuple(rounds), f"no revision left: {reason}")
            revision = Revision(proposal, reflected.reflection.findings, reason, budget.used)

    def reflect_amendment(
        self, request: PolicyAmendmentRequest
    ) -> PolicyLevelReflectionResult | ReflectionInvocationMeta:
        """The reflection on what is to become of a policy that is there, or the record that it is off."""
        source = request.snapshot.leading_event
        if self.reflection is None:
            return _record_switched_off(source)
        return self.reflection.reflect_amendment(request, source=source)

    async def _reflect(
        self,
        snapshot: PolicySnapshot,
        invariants: InvariantContext,
        answer: StrategistAnswer,
        proposal: PolicyProposal,
        playbook: PlaybookDefinition,
    ) -> PlanRound:
        source = snapshot.leading_event
        if self.reflection is None:
            return PlanRound(answer, None, _record_switched_off(source))
        request = PolicyLevelReflectionRequest.trust(
            snapshot=snapshot,
            proposal=proposal,
            playbook=playbook,
            state=snapshot.state,
            invariants=invariants,
        )
        result = await self.reflection.reflect(request, source=source, lint=self.linter(snapshot, proposal))
        return PlanRound(answer, request, result)


def _with_rationale(answer: StrategistAnswer, snapshot: PolicySnapshot) -> StrategistAnswer:
    """The answer; a plan that says no word of why is given the reasons of its own rules."""
    proposal = answer.proposal
    if proposal is None or proposal.rationale:
        return answer
    return answer.model_copy(update={"proposal": with_reasons(proposal, snapshot)})


def _record_switched_off(source: str) -> ReflectionInvocationMeta:
    return ReflectionInvocationMeta(
        cadence="policy_loop",
        source=source,
        outcome=InvocationOutcome.DISABLED,
        skip_reason="reflection off",
    )


def assemble_provider(
    context: RunContext,
    strategist: Strategist,
    playbooks: PlaybookReader,
    columns: RuleColumns,
    memory: MemoryReader,
    model: LanguageModel | None,
    critics: Sequence[Critic] = (),
) -> ReflectingPlanProvider:
    """A strategist with the fast reflection that the settings have.

    Args:
        context: of the run.
        strategist: who proposes.
        playbooks: active versions.
        columns: that the rules of proposals are checked on.
        memory: what the reflection reads.
        model: of the reflection in mode `full`; None in every other.
        critics: asked beside our checks.

    Raises:
        ConfigError: mode `full` has no model, or nothing asks the critics.
    """
    settings = context.settings.reflection
    if settings.mode == "off":
        if critics:
            raise ConfigError(
                "critics are asked by the fast reflection, and reflection is off: leave one of them out"
            )
        return ReflectingPlanProvider(strategist, None, playbooks, linter(columns))
    reflection = PolicyLevelReflectionService(
        settings, memory=memory, model=model, recorded=True, market_waits=context.market_waits,
        wordings=context.wordings, critics=critics,
    )  # fmt: skip
    return ReflectingPlanProvider(strategist, reflection, playbooks, linter(columns))
