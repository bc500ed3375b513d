"""The judge as its callers see it: one object, two questions.

Implements `services.ports.Judge` with the deterministic rules; over reports a model may be asked as well,
which can only drop what the rules accepted. It writes nothing and applies nothing: a verdict is journalled by
whoever asked, and actions go through the playbook lifecycle.
"""

from collections.abc import Sequence
from typing import ClassVar

from agents.judge_model import by_rules, weigh
from agents.judge_replanning import replan, with_evidence
from agents.judge_reply import Fallback
from agents.judge_rules import judge_amendment, judge_boundary
from schemas.evidence_plan import RecommendationEvidence
from schemas.invocation import ReflectionInvocationMeta
from schemas.judge import BoundaryVerdict, ReplanVerdict
from schemas.playbook import PlaybookDefinition
from schemas.proposal import PolicyProposal
from schemas.reflection import PolicyAmendmentRequest, PolicyLevelReflectionResult
from schemas.settings import GateSettings, JudgeSettings
from schemas.slow_reflection import HighLevelReflectionReport
from schemas.snapshot import PolicySnapshot
from schemas.state import Stateful
from schemas.vocabulary import JudgeDecision, RecommendedAction
from services.evidence.run_facts import RunFacts
from services.model_calls.language_model import LanguageModel
from services.model_calls.wording import Wordings


class JudgeAgentClient(Stateful):
    """The judge with counters of what it decided; grades reports again with `gate`.

    `reflection_off` is what the settings say: only then the record of a reflection that is off is a result.
    A model's reasons are claims, held against the report. Where the settings ask for a model's opinion on
    reports and none is given, the verdicts say so.
    """

    STATE: ClassVar = {
        "boundary_counts": dict[JudgeDecision, int],
        "replan_counts": dict[RecommendedAction, int],
    }
    REBUILT = frozenset({"_settings", "_gate", "_model", "_reflection_off", "_wordings"})

    def __init__(
        self,
        settings: JudgeSettings,
        gate: GateSettings | None = None,
        model: LanguageModel | None = None,
        *,
        reflection_off: bool = False,
        wordings: Wordings | None = None,
    ) -> None:
        self._settings = settings
        self._gate = gate or GateSettings()
        self._model = model
        self._reflection_off = reflection_off
        self._wordings = wordings or Wordings()
        self.boundary_counts = dict.fromkeys(JudgeDecision, 0)
        self.replan_counts = dict.fromkeys(RecommendedAction, 0)

    async def validate_boundary(
        self,
        snapshot: PolicySnapshot,
        proposal: PolicyProposal,
        reflection: PolicyLevelReflectionResult | ReflectionInvocationMeta,
        playbook: PlaybookDefinition,
    ) -> BoundaryVerdict:
        """Approve, revise, reject or stand down, with the reflection as evidence."""
        verdict = judge_boundary(
            snapshot, proposal, reflection, playbook, reflection_off=self._reflection_off
        )
        self.boundary_counts[verdict.decision] += 1
        return verdict

    def validate_amendment(
        self,
        request: PolicyAmendmentRequest,
        reflection: PolicyLevelReflectionResult | ReflectionInvocationMeta,
    ) -> BoundaryVerdict:
        """The same on a stop move, a keep or a stand-down of a policy that is there."""
        verdict = judge_amendment(request, reflection, reflection_off=self._reflection_off)
        self.boundary_counts[verdict.decision] += 1
        return verdict

    async def replan(
        self,
        report: HighLevelReflectionReport,
        definitions: tuple[PlaybookDefinition, ...],
        open_experiments: int,
        evidence: Sequence[RecommendationEvidence] = (),
    ) -> ReplanVerdict:
        """Turn a report into typed actions, or hold; report and evidence are data, never a command."""
        verdict = replan(report, definitions, open_experiments, self._settings, self._gate)
        verdict = with_evidence(verdict, evidence)
        if self._model is not None:
            wording = self._wordings.at(report.known_at)
            facts = RunFacts.of_report(report, (), definitions)
            verdict = await weigh(
                verdict, report, self._model, wording=wording, facts=facts, evidence=evidence
            )
        elif self._settings.replan != "rules":
            verdict = by_rules(verdict, Fallback.NO_MODEL)
        self.replan_counts[verdict.decision] += 1
        return verdict
