"""The judge of a run and what it reads beside a report, as the settings have them."""

from collections.abc import Mapping

from agents.evidence_planner import ModelPlanner
from agents.judge_agent_client import JudgeAgentClient
from agents.planning.plan_reply import PROMPT as PLANNER
from agents.planning.run_evidence import RunEvidence
from schemas.errors import ConfigError
from schemas.settings import Settings
from services.evidence_tools.evidence_buffer import EvidenceBuffer
from services.model_calls.language_model import LanguageModel
from services.model_calls.wording import PLAIN_RUN, Wordings

PLAN_TOKENS = 1_500


def judge_of(
    settings: Settings, model: LanguageModel | None = None, wordings: Wordings = PLAIN_RUN
) -> JudgeAgentClient:
    """The judge of a worker beside a run, or of a report that is judged again; it may lack its model."""
    off = settings.reflection.mode == "off"
    return JudgeAgentClient(
        settings.judge,
        settings.gate,
        model,
        reflection_off=off,
        wordings=wordings,
    )


def assemble_judge(settings: Settings, model: LanguageModel | None, wordings: Wordings) -> JudgeAgentClient:
    """The judge of a run, with its model where the settings ask one.

    Raises:
        ConfigError: there is none.
    """
    if settings.judge.replan != "rules" and model is None:
        raise ConfigError("judge.replan asks a model but none was given: use 'rules'")
    return judge_of(settings, model, wordings)


def evidence_of(
    settings: Settings,
    models: Mapping[str, LanguageModel],
    wordings: Wordings,
    kept: EvidenceBuffer | None = None,
) -> RunEvidence | None:
    """What a judge reads beside a report, planned by rules or by the model of the planner's prompt.

    Without `kept` rows it keeps those of a run that begins. None where nobody plans.

    Raises:
        ConfigError: a model shall plan and there is none.
    """
    if settings.planner.judge == "off":
        return None
    rows = EvidenceBuffer(settings) if kept is None else kept
    if settings.planner.judge != "model":
        return RunEvidence(rows, settings.planner)
    if PLANNER not in models:
        raise ConfigError("planner.judge asks a model but none was given: use 'rules'")

    def planner_at(known_at: int) -> ModelPlanner:
        wording = wordings.at(known_at)
        return ModelPlanner(models[PLANNER], settings.planner, max_tokens=PLAN_TOKENS, wording=wording)

    return RunEvidence(rows, settings.planner, planner_at)
