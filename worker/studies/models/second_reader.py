"""What a stored run asked its second reader about plans, ready to be asked again, and what comes of that.

The question is worded anew from the run's rows; its key says whether it is, byte for byte, the one that was
asked. There is no hurry: a reply that would have come too late for a run is a reply, and its lateness is
counted.
"""

from dataclasses import dataclass
from typing import ClassVar

from agents.language_models.cassette import KIND, recorded_call
from prompts import PromptTemplate
from schemas.errors import ConfigError, StoreError
from schemas.vocabulary import PolicyEventKind, ReflectionStatus
from services.journal.consolidations import AnsweredConsolidation, recorded_consolidations
from services.journal.index import JournalIndex
from services.journal.kinds import GENESIS
from services.model_calls.asking import NoReply, ask
from services.model_calls.record import Caller, Question, RecordedCall
from services.model_calls.wording import Wordings
from services.policy_checks.consolidation import FORM, consolidation_question, weigh_reply
from services.policy_checks.findings import status_of
from services.policy_level_reflection_service import PROMPT
from worker.studies.models.panel import Cost, Panel, tally

PATIENCE_MS = 60_000.0


@dataclass(frozen=True)
class Sample(Cost):
    """What one more asking gave.

    Attributes:
        final: verdict with the reply weighed in; None when there is none to weigh.
        refused: code of the finding for which the reply counted for nothing.
        failure: kind of the failure when no reply came.
        late: whether a run would not have waited for it; None where no budget is known.
        cited: ids of findings with which the reply lowered the verdict.
    """

    final: ReflectionStatus | None = None
    refused: str | None = None
    failure: str | None = None
    late: bool | None = None
    cited: tuple[str, ...] = ()


class SecondReader(Panel[AnsweredConsolidation, Sample]):
    """The model of the fast reflection with one template."""

    form, seat, model_setting = FORM, "fast", "fast_model"
    setting = "the fast reflection: set reflection.mode to 'full'"

    async def _ask(self, plan: AnsweredConsolidation) -> Sample:
        reply = await ask(
            self._model,
            system=self._template.system,
            prompt=self._questions.text(self._template, plan),
            max_tokens=self._questions.max_tokens,
            deadline_ms=PATIENCE_MS,
        )
        if isinstance(reply, NoReply):
            return Sample(failure=reply.kind)
        added = weigh_reply(reply.text, plan.request, plan.findings, self._questions.wordings.known)
        final = status_of((*plan.findings, *added.findings))
        cited = added.findings[0].evidence if final is not plan.rules else ()
        reflection = self._settings.reflection
        heartbeat = plan.source == PolicyEventKind.HEARTBEAT
        budget_ms = reflection.budget_heartbeat_ms if heartbeat else reflection.budget_event_ms
        return Sample(final=final, refused=added.refused, late=reply.latency_ms > budget_ms, cited=cited)


@dataclass(frozen=True)
class RecordedQuestions:
    """The plans about which a run asked its model and was answered, in order.

    Attributes:
        calls: every recorded call about a plan, the vain ones too.
        unanswered: how many calls ended otherwise, by kind.
        left_out: recorded calls that are about something else, by prompt.
        wordings: of its questions.
    """

    run_id: str
    plans: tuple[AnsweredConsolidation, ...]
    calls: tuple[RecordedCall, ...]
    unanswered: dict[str, int]
    left_out: dict[str, int]
    wordings: Wordings = Wordings()
    asks: ClassVar[type[SecondReader]] = SecondReader

    def text(self, template: PromptTemplate, plan: AnsweredConsolidation) -> str:
        """The question about a plan in a template's words."""
        wording = self.wordings.of(plan.snapshot)
        return consolidation_question(template, plan.request, plan.findings, wording)

    @property
    def model(self) -> str:
        """The model that was asked."""
        return self.calls[0].model

    @property
    def max_tokens(self) -> int:
        """Bound of a reply, as it was."""
        return self.calls[0].max_tokens

    @property
    def prompt_hash(self) -> str:
        """Content hash of the template that the run asked with."""
        return self.calls[0].prompt_hash


def read_questions(run_id: str, index: JournalIndex, *, anonymise: bool = False) -> RecordedQuestions:
    """What a run asked about plans; `anonymise` words it as a run of that setting does.

    Raises:
        ConfigError: no model ever answered it.
        StoreError: its rows cannot be read.
    """
    try:
        calls = [recorded_call(event.payload, None) for event in index.events if event.row.kind == KIND]
    except ValueError as error:
        raise StoreError(
            f"a recorded reply of run {run_id!r} cannot be read: see `thinktwice verify`"
        ) from error
    about_plans = tuple(call for call in calls if call.prompt == PROMPT)
    plans = recorded_consolidations(index)
    if not plans.answered or not about_plans:
        ended = ", ".join(f"{kind} {count}" for kind, count in sorted(plans.unanswered.items()))
        raise ConfigError(
            f"run {run_id!r} holds no model's answer about a plan"
            + (f" (asked in vain: {ended})" if ended else "")
            + ": record one with `thinktwice backtest --reflection full`"
        )
    return RecordedQuestions(
        run_id,
        plans.answered,
        about_plans,
        dict(sorted(plans.unanswered.items())),
        tally(call.prompt for call in calls if call.prompt != PROMPT),
        run_wordings(index, anonymise=anonymise),
    )


def run_wordings(index: JournalIndex, *, anonymise: bool) -> Wordings:
    """How the questions of a stored run word their data."""
    symbols = (event.payload["symbols"] for event in index.events if event.row.kind == GENESIS)
    return Wordings.of_run(next(symbols, ()), anonymise=anonymise)


def demand_same_questions(questions: RecordedQuestions, template: PromptTemplate) -> None:
    """Only what was asked may be called asked again.

    Raises:
        ConfigError: the template, or the wording of the data in it, is another by now.
    """
    asked, now = questions.prompt_hash, template.hash
    if asked != now:
        raise ConfigError(
            f"run {questions.run_id!r} asked with prompt {asked[:16]}, this one is {now[:16]}: give the text "
            "that it had with --prompt FILE, or see what the change does with `thinktwice model compare`"
        )
    keys = {call.key for call in questions.calls}
    for plan in questions.plans:
        text = questions.text(template, plan)
        if not _keys(questions.calls[0], template, text) & keys:
            raise ConfigError(
                f"row {plan.seq} of run {questions.run_id!r} was asked in other words than this version "
                "uses: sample it with the version that made it, or use `thinktwice model compare`"
            )


def _keys(call: RecordedCall, template: PromptTemplate, text: str) -> set[str]:
    """The keys of a question: asked with the form of its reply, and without one."""
    asked = call.provider, call.model, call.prompt, call.prompt_hash, call.effort
    callers = (Caller(*asked, form, thought_tokens=call.thought_tokens) for form in (FORM, None))
    return {Question(caller, template.system, text, call.max_tokens, 1).key for caller in callers}


def first_of_each(
    questions: RecordedQuestions, template: PromptTemplate, limit: int | None
) -> tuple[AnsweredConsolidation, ...]:
    """The plans whose questions differ, in order, at most `limit`."""
    unique: dict[str, AnsweredConsolidation] = {}
    for plan in questions.plans:
        unique.setdefault(questions.text(template, plan), plan)
    return tuple(unique.values())[:limit]
