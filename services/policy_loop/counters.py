"""Counters of the policy loop: what happened, by kind and reason, and how long it took.

Telemetry, never hashed.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from schemas.invocation import ReflectionInvocationMeta
from schemas.reflection import Finding, PolicyLevelReflectionResult
from schemas.settings import ReflectionSettings
from schemas.state import Stateful
from schemas.strategist_answer import StrategistAnswer
from schemas.vocabulary import InvocationOutcome, PolicyEventKind, ReflectionStatus, Severity
from services.deliberation.counters import TextCounters
from services.policy_loop.admission import Admission
from services.ports import PlanRound
from services.statistics.quantiles import quantiles
from trading_core.trigger_engine import Boundary


@dataclass
class PolicyCounters(Stateful):
    """One per run; the policy loop writes it, the summary reads it.

    Attributes:
        budgets: where the time budgets of a reflection stand.
        over_budget: reflections that took longer than theirs, a slow strategist left out.
        sent_back_for: findings by code that sent a proposal back.
        sent_back_own: proposals sent back whose rules are their playbook's own.
        passed_over: playbooks' own plans that were not offered, by the first finding against each.
        examples: the first of each code.
        proposed: plans, by the playbook that each names.
        reader: plans that rules passed where a second reader was there, by whether it had anything to decide.
        reader_unused: those about which it was to be asked and gave no verdict that counts, by why.
    """

    REBUILT = frozenset({"budgets"})

    budgets: ReflectionSettings = field(default_factory=ReflectionSettings)
    events: Counter[str] = field(default_factory=Counter)
    skips: Counter[str] = field(default_factory=Counter)
    overrides: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    answers: Counter[str] = field(default_factory=Counter)
    sources: Counter[str] = field(default_factory=Counter)
    fallbacks: Counter[str] = field(default_factory=Counter)
    reflections: Counter[str] = field(default_factory=Counter)
    invocations: Counter[str] = field(default_factory=Counter)
    texts: TextCounters = field(default_factory=TextCounters)
    finding_codes: Counter[str] = field(default_factory=Counter)
    amendments: Counter[str] = field(default_factory=Counter)
    amendment_codes: Counter[str] = field(default_factory=Counter)
    sent_back_for: Counter[str] = field(default_factory=Counter)
    sent_back_own: int = 0
    passed_over: Counter[str] = field(default_factory=Counter)
    examples: dict[str, Finding] = field(default_factory=dict)
    proposed: Counter[str] = field(default_factory=Counter)
    reader: Counter[str] = field(default_factory=Counter)
    reader_unused: Counter[str] = field(default_factory=Counter)
    decisions: Counter[str] = field(default_factory=Counter)
    evaluations: int = 0
    revisions: int = 0
    errors: int = 0
    over_budget: int = 0
    evaluation_ms: list[float] = field(default_factory=list)
    reflection_ms: list[float] = field(default_factory=list)

    def count_boundary(self, boundary: Boundary, decision: Admission) -> None:
        """One boundary with what the gate said; without an event: a safety override."""
        kinds = [str(event) for event in boundary.events] or [str(PolicyEventKind.SAFETY_OVERRIDE)]
        self.events.update(kinds)
        self.skips.update(str(skip.reason) for skip in decision.skips)
        self.overrides.update(str(reason) for reason in decision.overrides)

    def count_round(self, one: PlanRound, *, is_own: bool = False) -> None:
        """One answer of the strategist with its reflection; `is_own`: it is its playbook's own plan."""
        self.answers[str(one.answer.kind)] += 1
        self.sources[one.answer.model] += 1
        if (plan := one.answer.proposal) is not None:
            self.proposed[plan.playbook_id] += 1
        self.passed_over.update(base.codes[0] for base in one.answer.passed_over)
        if one.answer.fallback is not None:
            self.fallbacks[one.answer.fallback] += 1
        if (refined := one.answer.deliberation) is not None:
            self.texts.count(refined)
        if one.unusable is not None:
            self._count_sent_back(one.answer, (one.unusable,))
        if isinstance(one.reflection, PolicyLevelReflectionResult):
            self.reflections[str(one.reflection.status)] += 1
            self.finding_codes.update(finding.code for finding in one.reflection.findings)
            self._count_sent_back(one.answer, one.reflection.findings)
            self.sent_back_own += is_own and one.reflection.status is not ReflectionStatus.PASS
            self._count_reflection(one.reflection)
            self._count_reader(one.reflection)

    def _count_reader(self, result: PolicyLevelReflectionResult) -> None:
        if result.awaited_reader:
            self.reader["asked"] += 1
            self.reader_unused.update([result.meta.skip_reason] if result.meta.skip_reason else [])
        elif result.prompt_hash and result.status is ReflectionStatus.PASS:
            self.reader["nothing_to_decide"] += 1

    def count_amendment(self, reflection: PolicyLevelReflectionResult | ReflectionInvocationMeta) -> None:
        """The reflection that one amendment of a policy met."""
        if isinstance(reflection, PolicyLevelReflectionResult):
            self.amendments[str(reflection.status)] += 1
            self.amendment_codes.update(finding.code for finding in reflection.findings)
            self._count_reflection(reflection)
        else:
            self.amendments[str(reflection.outcome)] += 1

    def count_invocations(self, invocations: Iterable[ReflectionInvocationMeta]) -> None:
        """How each reflection of one evaluation went."""
        self.invocations.update(str(met.outcome) for met in invocations)

    def _count_reflection(self, result: PolicyLevelReflectionResult) -> None:
        self.reflection_ms.append(result.meta.latency_ms)
        self.over_budget += result.meta.latency_ms > self.budgets.budget_ms(result.meta.source)

    def _count_sent_back(self, answer: StrategistAnswer, findings: tuple[Finding, ...]) -> None:
        for finding in findings:
            if answer.proposal is not None and finding.severity in (Severity.MAJOR, Severity.BLOCKER):
                self.sent_back_for[finding.code] += 1
                self.examples.setdefault(finding.code, finding)

    def document(self) -> dict[str, Any]:
        """The `policy_loop` part of the run's JSON document."""
        reflections = {name: self.reflections[name] for name in ("pass", "revise", "block", "error")}
        reflections["degraded"] = self.invocations[InvocationOutcome.DEGRADED]
        return {
            "events": dict(sorted(self.events.items())),
            "skips": dict(sorted(self.skips.items())),
            "overrides": dict(sorted(self.overrides.items())),
            "evaluations": self.evaluations,
            "outcomes": dict(sorted(self.outcomes.items())),
            "answers": dict(sorted(self.answers.items())),
            "frozen": self.outcomes["frozen"],
            "stand_downs": self.outcomes["stood_down"],
            "revisions": self.revisions,
            "reflections": reflections,
            "finding_codes": dict(sorted(self.finding_codes.items())),
            "sent_back_for": dict(sorted(self.sent_back_for.items())),
            "sent_back_own": self.sent_back_own,
            "passed_over": dict(sorted(self.passed_over.items())),
            "reader": self.second_reader(),
            "amendments": {
                str(name): self.amendments[name] for name in (*ReflectionStatus, InvocationOutcome.DISABLED)
            },
            "amendment_codes": dict(sorted(self.amendment_codes.items())),
            "invocations": {str(outcome): self.invocations[outcome] for outcome in InvocationOutcome},
            "degraded_share": self._degraded_share(),
            "over_budget": self.over_budget,
            "budget_held_share": self._budget_held_share(),
            "latency_ms": quantiles(self.evaluation_ms),
            "reflection_latency_ms": quantiles(self.reflection_ms),
        }

    def second_reader(self) -> dict[str, Any]:
        """About how many plans it was asked, and how many of its verdicts do not count, by why."""
        request = {name: self.reader[name] for name in ("asked", "nothing_to_decide")}
        return request | {"unused": dict(sorted(self.reader_unused.items()))}

    def strategist(self) -> dict[str, Any]:
        """Who answered and why the rules stood in: in the `strategist` part of the run's JSON document."""
        return {
            "answers": dict(sorted(self.sources.items())),
            "fallbacks": dict(sorted(self.fallbacks.items())),
        }

    def _budget_held_share(self) -> float | None:
        made = len(self.reflection_ms)
        return 1.0 - self.over_budget / made if made else None

    def _degraded_share(self) -> float | None:
        """Share of the reflections made in which the rules decided although a model was to be asked."""
        degraded = self.invocations[InvocationOutcome.DEGRADED]
        made = self.invocations[InvocationOutcome.RAN] + degraded
        return degraded / made if made else None
