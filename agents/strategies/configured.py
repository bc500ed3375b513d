"""The strategist that the settings name: the rules, or a model with the rules behind it."""

from functools import lru_cache, partial

from agents.strategies.model_strategist import ModelStrategist, PlanReaders, PlanTerms
from agents.strategies.rule_strategist import Exploration, RuleStrategist
from prompts import PromptTemplate
from schemas.errors import ConfigError
from schemas.settings import Settings
from services.context import RunContext
from services.deliberation.forms import CRITIQUE, REASONS
from services.deliberation.text_models import TextModels
from services.model_calls.language_model import LanguageModel
from services.model_calls.wording import Wordings
from services.policy_checks.bases import SnapshotCheck
from services.policy_loop.invariant_context import invariant_context, tolerances
from services.ports import PlaybookReader, Strategist


def configured_strategist(
    context: RunContext,
    readers: PlanReaders,
    model: LanguageModel | None,
    texts: TextModels,
    symbols: tuple[str, ...],
) -> Strategist:
    """The strategist of a run over these symbols.

    `texts` look at a model's rationale again, where they have who criticises and who corrects.

    Raises:
        ConfigError: it asks a model and there is none.
    """
    settings = context.settings
    rules = configured_rules(settings, readers.playbooks, symbols)
    if settings.policy_loop.strategist == "rules":
        return rules
    if model is None:
        raise ConfigError("policy_loop.strategist asks a model but none was given: use 'rules'")
    reread = texts if texts.has(CRITIQUE, REASONS) else None
    return model_strategist(settings, model, rules, readers, context.wordings, texts=reread)


def configured_rules(
    settings: Settings, playbooks: PlaybookReader, symbols: tuple[str, ...]
) -> RuleStrategist:
    """The rules of a run over these symbols: bases that cannot pass now are not offered."""
    envelope = settings.envelope
    of_snapshot = partial(invariant_context, settings, playbooks=playbooks, symbols=symbols)
    invariants = lru_cache(maxsize=1)(of_snapshot)  # of one snapshot every base is asked
    check = SnapshotCheck(settings.reflection, playbooks, invariants)
    explored = Exploration(settings.policy_loop.explore, settings.seed)
    return RuleStrategist(playbooks, envelope.allowed_directions, envelope.allowed_playbooks, check, explored)


def model_strategist(
    settings: Settings,
    model: LanguageModel,
    rules: RuleStrategist,
    readers: PlanReaders,
    wordings: Wordings,
    prompt: PromptTemplate | None = None,
    texts: TextModels | None = None,
) -> ModelStrategist:
    """A strategist of a model as the settings have it; `prompt` None is the one in use."""
    terms = PlanTerms(
        settings.llm.strategist_deadline_ms,
        tolerances(settings),
        own_rules=settings.reflection.mode != "off",
        tick=settings.execution.tick_size,
        reflection_pass=settings.deliberation.reflection_pass,
    )
    return ModelStrategist(model, rules, readers, terms, wordings=wordings, prompt=prompt, texts=texts)
