"""The strategist that the settings name: the rules, or a model with the rules behind it."""

from agents.strategies.model_strategist import ModelStrategist
from agents.strategies.plan_bases import FrozenPlan
from agents.strategies.rule_strategist import RuleStrategist
from prompts import PromptTemplate
from schemas.errors import ConfigError
from schemas.settings import Settings
from services.model_calls.wording import Wordings
from services.policy_loop.invariant_context import tolerances
from services.ports import BackgroundReader, LanguageModel, PlaybookReader, Strategist


def configured_strategist(
    settings: Settings,
    playbooks: PlaybookReader,
    model: LanguageModel | None,
    frozen: FrozenPlan,
    background: BackgroundReader,
    wordings: Wordings,
) -> Strategist:
    """The strategist of a run.

    Raises:
        ConfigError: it asks a model and there is none.
    """
    envelope = settings.envelope
    rules = RuleStrategist(playbooks, envelope.allowed_directions, envelope.allowed_playbooks)
    if settings.policy_loop.strategist == "rules":
        return rules
    if model is None:
        raise ConfigError("policy_loop.strategist asks a model but none was given: use 'rules'")
    return model_strategist(settings, model, rules, playbooks, frozen, background, wordings)


def model_strategist(
    settings: Settings,
    model: LanguageModel,
    rules: RuleStrategist,
    playbooks: PlaybookReader,
    frozen: FrozenPlan,
    background: BackgroundReader,
    wordings: Wordings,
    prompt: PromptTemplate | None = None,
) -> ModelStrategist:
    """A strategist of a model as the settings have it; `prompt` None is the one in use."""
    return ModelStrategist(
        model,
        rules,
        playbooks,
        frozen,
        deadline_ms=settings.llm.strategist_deadline_ms,
        background=background,
        tolerances=tolerances(settings),
        wordings=wordings,
        own_rules=settings.reflection.mode != "off",
        tick=settings.execution.tick_size,
        prompt=prompt,
    )
