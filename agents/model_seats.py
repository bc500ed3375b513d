"""Which model the settings name for each seat of a run and for each prompt about texts."""

from agents.planning.plan_reply import PROMPT as PLANNER
from schemas.settings import Settings
from services.deliberation.forms import (
    CRITIQUE,
    IMPROVEMENT,
    OUTLINE,
    QUALITY,
    REASONS,
    REVIEW,
    REWRITES,
    SECTION,
)


def text_models_of(settings: Settings) -> dict[str, str]:
    """Which model is asked with each prompt about texts, and with that of the judge's planner."""
    shown, found = settings.deliberation, dict[str, str]()
    if settings.policy_loop.strategist != "rules" and shown.reflection_pass.enabled:
        writer = settings.llm.strategist_model
        found |= {CRITIQUE: shown.critique_model or writer, REASONS: writer}
    if settings.reflection.mode == "full":
        writer = settings.llm.slow_model
        critic = shown.critique_model or writer
        found |= {QUALITY: critic, IMPROVEMENT: writer} if shown.quality.enabled else {}
        found |= {REVIEW: critic, IMPROVEMENT: writer} if shown.review.enabled else {}
        found |= {REWRITES[name]: writer for name in REWRITES if name in found and shown.rewrites_by(writer)}
        found |= {OUTLINE: writer, SECTION: writer} if shown.chunked.enabled else {}
    return found | ({PLANNER: settings.llm.judge_model} if settings.planner.judge == "model" else {})


def seats_of(settings: Settings) -> dict[str, str]:
    """Which model sits in each seat of a run that the settings give to one."""
    llm, found = settings.llm, dict[str, str]()
    if settings.reflection.mode == "full":
        found |= {"fast": llm.fast_model, "slow": llm.slow_model}
    if settings.policy_loop.strategist != "rules":
        found["strategist"] = llm.strategist_model
    if settings.judge.replan != "rules":
        found["judge"] = llm.judge_model
    return found


def models_in_use(settings: Settings) -> tuple[str, ...]:
    """The models that the settings ask, as they name them, each once."""
    return tuple(dict.fromkeys([*seats_of(settings).values(), *text_models_of(settings).values()]))
