"""The reflection pass: one critique against a checklist, and a minimal correction where it is sure enough.

A critique that cannot be read changes nothing, and neither does a correction that brings a fault of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from schemas.deliberation import Critique, CritiqueSource, Deliberation, DeliberationEvent
from schemas.settings.deliberation import PassSettings
from services.deliberation.budget import Budget
from services.deliberation.forms import CRITIQUE, Verdict
from services.deliberation.model_critics import VERDICT_OF, pass_critic
from services.deliberation.policies import Acceptance, brings_nothing_new, latest, skip_reason
from services.deliberation.refine import Critic, Draft, Policies, Reviser, Task, Trace, refine
from services.deliberation.text_models import TextModels

NAME = "pass"
ASSESSMENT_OF = {verdict: reply for reply, verdict in VERDICT_OF.items()}


def calls_of(settings: PassSettings) -> int:
    """Model calls at most."""
    return 2 * settings.max_iterations


@dataclass
class PassTrace(Trace):
    """Tells the critiques of one source as they come, and corrections once it is known which text stands."""

    source: CritiqueSource | None = None
    corrections: list[tuple[Draft, str, float]] = field(default_factory=list)

    def note_critique(self, critique: Critique, elapsed_ms: float) -> None:
        """One critique; that of a rule beside a model is no event."""
        if self.source in (None, critique.source):
            self.add("reflection_critique", elapsed_ms, **_critique(critique))

    def note_revision(self, draft: Draft, before: str, elapsed_ms: float) -> None:
        """One correction of a text."""
        self.corrections.append((draft, before, elapsed_ms))

    def list_events(self, final: str) -> tuple[DeliberationEvent, ...]:
        """Every event, the corrections with whether they stand."""
        for draft, before, elapsed_ms in self.corrections:
            self.add(
                "reflection_correction",
                elapsed_ms,
                applied=draft.text == final,
                original_length=len(before),
                corrected_length=len(draft.text),
            )
        return tuple(self.events)


async def run_pass(
    task: Task,
    draft: str | Draft,
    settings: PassSettings,
    budget: Budget,
    *,
    rules: Sequence[Critic] = (),
    models: TextModels | None = None,
    reviser: Reviser | None = None,
    reviewed: bool = False,
) -> Deliberation:
    """What stands of a text after one pass.

    Args:
        task: what the text is to say.
        draft: the text, with what it was rendered from.
        settings: of the pass.
        budget: of the text.
        rules: critics without a model, who are asked first.
        models: who criticises; None: the rules alone.
        reviser: who corrects; None: nobody, so that a text that needs it stays as it is.
        reviewed: the text was looked at before, and is skipped.
    """
    critics, trace = [*rules], PassTrace()
    if models is not None and models.has(CRITIQUE):
        critics.append(pass_critic(models, settings))
        trace.source = "model"
    part = budget.child(rounds=settings.max_iterations, calls=calls_of(settings))
    policies = _policies(settings, reviewed)
    done = await refine(task, draft, critics, reviser, policies, part, preset=NAME, trace=trace)
    return done.model_copy(update={"events": trace.list_events(done.final)})


def _policies(settings: PassSettings, reviewed: bool) -> Policies:
    return Policies(
        Acceptance(min_confidence=settings.min_confidence),
        brings_nothing_new,
        latest,
        lambda given: skip_reason(
            given, enabled=settings.enabled, minimum=settings.minimum_characters, reviewed=reviewed
        ),
        critique_again=settings.max_iterations > 1,
    )


def _critique(critique: Critique) -> dict[str, Any]:
    assessment: Verdict = ASSESSMENT_OF.get(critique.verdict, "NEEDS CORRECTION")
    passes = assessment == "PASS"
    return {
        "critic": critique.critic,
        "assessment": assessment,
        "needs_correction": assessment == "NEEDS CORRECTION",
        "confidence": critique.confidence,
        "explanation": None if passes else critique.explanation,
    }


def result_fields(done: Deliberation) -> dict[str, Any]:
    """The result as the preset's own fields have it."""
    if done.skip_reason is not None:
        return {"skipped": True, "reason": done.skip_reason, "final_response": done.final}
    of_first = [critique for critique in done.critiques if critique.candidate == 0]
    deciding = next((c for c in of_first if c.verdict != "accept"), of_first[-1] if of_first else None)
    return {
        "reflected": True,
        "critique": None if deciding is None else _critique(deciding),
        "correction_applied": done.changed,
        "original_response": done.initial,
        "final_response": done.final,
        "elapsed_ms": done.elapsed_ms,
    }
