"""What a stored run asked its second reader about plans, ready to be asked again, and what comes of that.

There is no hurry: a reply that would have come too late for a run is a reply, and its lateness is counted.
"""

from dataclasses import dataclass

from agents.language_models.cassette import KIND, recorded_call
from prompts import PromptTemplate
from schemas.errors import ConfigError, StoreError
from schemas.settings import Settings
from services.journal.consolidations import AnsweredConsolidation, recorded_consolidations
from services.journal.index import JournalIndex
from services.journal.kinds import GENESIS
from services.model_calls.asking import NoReply, ask
from services.model_calls.language_model import LanguageModel
from services.model_calls.wording import Wordings
from services.policy_checks.consolidation import consolidation_question, weigh_reply
from services.policy_checks.findings import status_of
from worker.studies.ask_again.asking import READER, Answer, RunQuestion, RunQuestions

PATIENCE_MS = 60_000.0


@dataclass(frozen=True, kw_only=True)
class ReaderQuestion(RunQuestion):
    """A plan about which a model was asked; `max_tokens` bounds its reply, as it did.

    `market_waits`: no bar came meanwhile, which the deadline of the run depends on.
    """

    plan: AnsweredConsolidation
    symbols: tuple[str, ...]
    max_tokens: int
    market_waits: bool

    async def ask(self, model: LanguageModel, settings: Settings, template: PromptTemplate) -> Answer:
        """The verdict, with the reply weighed in as a run does."""
        plan, wordings = self.plan, Wordings.of_run(self.symbols, anonymise=settings.llm.anonymise)
        wording = wordings.of(plan.snapshot)
        reply = await ask(
            model,
            system=template.system,
            prompt=consolidation_question(template, plan.request, plan.findings, wording),
            max_tokens=self.max_tokens,
            deadline_ms=PATIENCE_MS,
        )
        if isinstance(reply, NoReply):
            return Answer(reply.kind, replied=False)
        added = weigh_reply(reply.text, plan.request, plan.findings, wordings.known)
        reflection = settings.reflection
        deadline_ms = reflection.deadline_ms(
            plan.source, plan.snapshot.timeframe, market_waits=self.market_waits
        )
        facts = {
            "late": float(reply.latency_ms > deadline_ms),
            "counts_for_nothing": float(bool(added.refused)),
        }
        return Answer(status_of((*plan.findings, *added.findings)).value, facts=facts)


def read_reader_questions(run_id: str, index: JournalIndex, *, market_waits: bool) -> RunQuestions:
    """The plans about which a run asked its second reader and was answered, each question once.

    `market_waits`: as the run had it.

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
    bounds = [call.max_tokens for call in calls if call.prompt == READER]
    plans = recorded_consolidations(index)
    if not plans.answered or not bounds:
        ended = ", ".join(f"{kind} {count}" for kind, count in sorted(plans.unanswered.items()))
        raise ConfigError(
            f"run {run_id!r} holds no model's answer about a plan"
            + (f" (asked in vain: {ended})" if ended else "")
            + ": record one with `thinktwice backtest --reflection full`"
        )
    symbols, first = run_symbols(index), dict[tuple[str, str], ReaderQuestion]()
    for plan in plans.answered:
        questions = (plan.snapshot.content_hash, plan.request.proposal.content_hash)
        first.setdefault(questions, _question(plan, symbols, bounds[0], market_waits))
    return RunQuestions(run_id, READER, tuple(first.values()), dict(sorted(plans.unanswered.items())))


def _question(
    plan: AnsweredConsolidation, symbols: tuple[str, ...], max_tokens: int, market_waits: bool
) -> ReaderQuestion:
    snapshot, request = plan.snapshot, plan.request
    about = {
        "seq": plan.seq,
        "known_at": snapshot.known_at,
        "symbol": snapshot.symbol,
        "playbook_id": request.playbook.id,
        "direction": request.proposal.direction,
        "rules": plan.rules.value,
        "findings": sorted({found.code for found in plan.findings}),
    }
    return ReaderQuestion(
        about=about,
        known_at=snapshot.known_at,
        symbol=snapshot.symbol,
        recorded=plan.final.value,
        plan=plan,
        symbols=symbols,
        max_tokens=max_tokens,
        market_waits=market_waits,
    )


def run_symbols(index: JournalIndex) -> tuple[str, ...]:
    """The symbols of a stored run."""
    return next((tuple(e.payload["symbols"]) for e in index.events if e.row.kind == GENESIS), ())
