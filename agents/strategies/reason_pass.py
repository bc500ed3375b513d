"""The reflection pass over a model's rationale: its words are code's, so a correction names other reasons.

Critics and corrector see the words as the question told the snapshot; what is stored has the market's values.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from schemas.background import DecisionBackground
from schemas.canonical import content_hash
from schemas.deliberation import Deliberation
from schemas.playbook import PlaybookDefinition
from schemas.proposal import PolicyProposal
from schemas.reasons import PlanReason, Reasons
from schemas.settings.deliberation import PassSettings
from schemas.snapshot import PolicySnapshot
from services.deliberation.budget import Budget
from services.deliberation.forms import REASONS, ReasonsReply, read_text_reply
from services.deliberation.policies import Round
from services.deliberation.presets.reflection_pass import run_pass
from services.deliberation.refine import Draft, Task
from services.deliberation.text_models import (
    MALFORMED,
    TextModels,
    describe_critique,
    quote_parts,
    read_as,
    with_comments_alone,
)
from services.model_calls.asking import NoReply
from services.model_calls.quoting import quoted_json
from services.model_calls.wording import PLAIN, Wording
from services.policy_checks.reasons import holds, rationale_of, reason_names

NOTHING_NEW = NoReply(MALFORMED, "no reason of the correction is known and holds")


@dataclass(frozen=True)
class ReasonText:
    """What the words of a plan's reasons are written from; `keep` is what is left of a model's own words."""

    proposal: PolicyProposal
    playbook: PlaybookDefinition
    snapshot: PolicySnapshot
    background: DecisionBackground | None
    wording: Wording
    keep: Callable[[str | None], str | None]

    def write(self, because: Sequence[PlanReason], wording: Wording) -> str:
        """The reasons in words."""
        return rationale_of(because, self.proposal, self.snapshot, self.background, wording)

    def draft(self, reasons: Reasons) -> Draft:
        """The reasons as the text that is looked at."""
        return Draft(self.write(reasons.because, self.wording), source=(reasons,))

    def keep_known(self, because: Sequence[PlanReason]) -> tuple[PlanReason, ...]:
        """The reasons whose name there is, without those that are not so."""
        names = reason_names(self.snapshot, self.background, self.proposal)
        known = (reason for reason in because if reason.name in names[reason.kind])
        return tuple(
            reason
            for reason in known
            if holds(reason, self.proposal, self.playbook, self.snapshot) is not False
        )

    def restate(self, done: Deliberation) -> Deliberation:
        """The outcome as it is stored: texts with the values of the market, and a model's words if kept."""
        plain = {
            candidate.text: self.write(reasons.because, PLAIN)
            for candidate in done.candidates
            for reasons in candidate.source
            if isinstance(reasons, Reasons)
        }
        candidates = tuple(
            candidate.model_copy(
                update={"text": plain[candidate.text], "hash": content_hash(plain[candidate.text])}
            )
            for candidate in done.candidates
        )
        texts = {"initial": self.proposal.rationale, "final": plain.get(done.final, self.proposal.rationale)}
        done = done.model_copy(update={"candidates": candidates, **texts})
        return with_comments_alone(done, self.keep)


@dataclass(frozen=True)
class ReasonCorrector:
    """Other reasons in the place of those whose faults were named."""

    models: TextModels
    text: ReasonText
    max_tokens: int

    async def revise(self, task: Task, rounds: Sequence[Round], budget: Budget) -> Draft | NoReply:
        """The corrected reasons in words, or why there are none."""
        newest = rounds[-1]
        faults = [
            describe_critique(critique) for critique in newest.critiques if critique.verdict != "accept"
        ]
        because = [reason.payload() for reason in _reasons_of(newest.candidate.source).because]
        names = reason_names(self.text.snapshot, self.text.background, self.text.proposal)
        wording = self.text.wording
        values = {
            "because": wording.word_value(because),
            "names": wording.word_value(names),
            "faults": faults,
        }
        quoted = {name: quoted_json(value) for name, value in values.items()}
        parts = quote_parts(task, newest.candidate.text)
        reply = await self.models.ask(REASONS, self.max_tokens, budget, **parts, **quoted)
        answer_given = read_as(reply, lambda text: read_text_reply(wording.names_back(text), ReasonsReply))
        if isinstance(answer_given, NoReply):
            return answer_given
        known = self.text.keep_known(answer_given.because)
        comment = answer_given.comment and (
            self.text.keep(answer_given.comment) or ""
        )  # empty: there was one
        return self.text.draft(Reasons(because=known, comment=comment)) if known else NOTHING_NEW


async def reread(
    text: ReasonText, models: TextModels, settings: PassSettings, budget: Budget
) -> tuple[Reasons | None, Deliberation]:
    """The reasons that stand in the place of the plan's, if others do, and how that came about."""
    proposal, snapshot = text.proposal, text.snapshot
    shown = quoted_json(text.wording.word_value(snapshot.payload()))
    task = Task(f"Why {proposal.direction} by {proposal.playbook_id}, now?", shown)
    done = await run_pass(
        task,
        text.draft(Reasons(because=proposal.because)),
        settings,
        budget,
        models=models,
        reviser=ReasonCorrector(models, text, settings.correction_tokens),
    )
    corrected = _reasons_of(done.standing.source) if done.changed and done.standing else None
    return corrected, text.restate(done)


def _reasons_of(source: Sequence[object]) -> Reasons:
    return next(part for part in source if isinstance(part, Reasons))
