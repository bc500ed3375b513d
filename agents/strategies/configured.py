"""The strategist that the settings name: the rules, or a model with the rules behind it."""

from collections.abc import Callable, Mapping
from functools import lru_cache

from agents.strategies.model_strategist import ModelStrategist
from agents.strategies.plan_changes import FrozenPlan
from agents.strategies.rule_strategist import RuleStrategist
from prompts import PromptTemplate
from schemas.background import DecisionBackground
from schemas.errors import ConfigError
from schemas.policy import FrozenPolicy
from schemas.proposal import PolicyProposal
from schemas.reflection import InvariantContext
from schemas.settings import Settings
from schemas.snapshot import PolicySnapshot
from services.deliberation.forms import CRITIQUE, REASONS
from services.deliberation.text_models import TextModels
from services.model_calls.language_model import LanguageModel
from services.model_calls.wording import Wordings
from services.policy_checks.bases import SnapshotCheck
from services.policy_loop.invariant_context import invariant_context, tolerances
from services.ports import BackgroundReader, PlaybookReader, Strategist


def configured_strategist(
    settings: Settings,
    playbooks: PlaybookReader,
    model: LanguageModel | None,
    policies: Callable[[], Mapping[str, FrozenPolicy]],
    backgrounds: Callable[[], Mapping[str, DecisionBackground]],
    wordings: Wordings,
    texts: TextModels,
    symbols: tuple[str, ...],
) -> Strategist:
    """The strategist of a run; `policies` are those frozen in it, `backgrounds` those of open evaluations.

    `texts` look at a model's rationale again, where they have who criticises and who corrects.

    Raises:
        ConfigError: it asks a model and there is none.
    """
    rules = configured_rules(settings, playbooks, symbols)
    if settings.policy_loop.strategist == "rules":
        return rules
    if model is None:
        raise ConfigError("policy_loop.strategist asks a model but none was given: use 'rules'")

    def frozen(policy_id: str) -> PolicyProposal | None:
        policy = policies().get(policy_id)
        return None if policy is None else policy.proposal

    def background(snapshot: PolicySnapshot) -> DecisionBackground | None:
        return backgrounds().get(snapshot.content_hash)

    return model_strategist(
        settings, model, rules, playbooks, frozen, background, wordings,
        texts=texts if texts.has(CRITIQUE, REASONS) else None,
    )  # fmt: skip


def configured_rules(
    settings: Settings, playbooks: PlaybookReader, symbols: tuple[str, ...]
) -> RuleStrategist:
    """The rules of a run over these symbols: bases that cannot pass now are not offered."""

    @lru_cache(maxsize=1)  # of one snapshot every base is asked
    def invariants(snapshot: PolicySnapshot) -> InvariantContext:
        return invariant_context(settings, snapshot, playbooks, symbols)

    envelope = settings.envelope
    check = SnapshotCheck(settings.reflection, playbooks, invariants)
    return RuleStrategist(playbooks, envelope.allowed_directions, envelope.allowed_playbooks, check)


def model_strategist(
    settings: Settings,
    model: LanguageModel,
    rules: RuleStrategist,
    playbooks: PlaybookReader,
    frozen: FrozenPlan,
    background: BackgroundReader,
    wordings: Wordings,
    prompt: PromptTemplate | None = None,
    texts: TextModels | None = None,
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
        texts=texts,
        reflection_pass=settings.deliberation.reflection_pass,
    )
