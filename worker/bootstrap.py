"""The one place that knows both sides and wires them; nothing is built at import time."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from agents.judging import assemble_judge, evidence_of
from agents.language_models.cassette import Cassette
from agents.strategies.configured import configured_strategist
from agents.strategies.plan_provider import assemble_provider
from schemas.playbook import PlaybookDefinition
from schemas.settings import Settings
from schemas.trials import NO_TRIALS, TrialLedger
from services.high_level.narrator import narrator_of
from services.journal.parking import ParkingJournal
from services.journal.writer import JournalWriter
from services.memory.experience import assemble_experience
from services.model_calls.wording import Wordings
from services.playbooks.assembly import assemble_playbooks
from services.policy_loop.account_engine import account_engine
from services.policy_loop.background import BackgroundBuilder
from services.policy_loop.snapshot_builder import SnapshotBuilder, names_for_replies
from services.policy_loop_service import PolicyLoopService
from services.ports import Critic, Judge, MemoryReader, PlanProvider, Strategist
from services.slow_loop.assembly import assemble_reflection, assemble_trials
from services.slow_loop_service import SlowLoopService
from trading_core.bars import BarSeries
from trading_core.market import Market
from trading_core.tick_guard import TickGuard
from worker.models import Models, RecordedPast, assemble_models
from worker.session import Session


@dataclass(frozen=True)
class Overrides:
    """What a caller puts around parts of a session: each is given ours, and what it returns is asked.

    `critics` are asked beside our checks. `names` say what is the caller's own, for people.
    """

    strategist: Callable[[Strategist], Strategist] = lambda ours: ours
    judge: Callable[[Judge], Judge] = lambda ours: ours
    critics: tuple[Critic, ...] = ()
    names: tuple[str, ...] = ()


NO_OVERRIDES = Overrides()


def assemble(
    settings: Settings,
    bars: BarSeries,
    journal: JournalWriter,
    definitions: Sequence[PlaybookDefinition] | None = None,
    models: Models | None = None,
    cassette: Cassette | None = None,
    recorded: RecordedPast | None = None,
    *,
    market_waits: bool = True,
    ledger: TrialLedger = NO_TRIALS,
    own: Overrides = NO_OVERRIDES,
) -> Session:
    """A session over `bars`, ready for `begin`.

    Args:
        settings: the resolved configuration.
        bars: all bars that the session will see, or the first of those that will come.
        journal: empty writer.
        definitions: playbooks; None loads the configured folder or the embedded ones.
        models: language models to ask; None makes the configured ones.
        cassette: recorded replies to play instead; None plays the configured one, if there is one.
        recorded: replies of a run that goes on: played until its past is over, then models are asked.
        market_waits: no bar comes while a model thinks.
        ledger: what was tried on these bars before.
        own: what the caller puts around parts.

    Raises:
        ConfigError: a playbook file is wrong, mode `full` or the strategist has no model, or nothing asks the
            critics.
    """
    guard = TickGuard()
    books = assemble_playbooks(settings, definitions, guard, int(bars.times[0]))
    market = Market.of(bars, settings.policy_loop.regime)
    events = ParkingJournal(journal)
    wordings = Wordings.of_run(bars.symbols, anonymise=settings.llm.anonymise)
    called = wordings.at(int(bars.times[0])).symbols.values() or bars.symbols
    asked = assemble_models(
        settings, events, market.clock, guard, os.environ, given=models, cassette=cassette, past=recorded,
        names=names_for_replies(books.definitions, called, market.bars.timeframe),
    )  # fmt: skip
    metered = asked.accounted
    engine = account_engine(settings, market, guard)
    playbooks = books.registry.reader()
    experience = assemble_experience(settings.memory, market.clock, guard, playbooks.rules)
    remembered, expected = experience.memory.reader(), experience.expectations.reader()
    judge = own.judge(assemble_judge(settings, metered.judge, wordings))

    def make_strategist(models: Models) -> Strategist:
        return configured_strategist(
            settings, playbooks, models.strategist, lambda: policy_loop.policies,
            lambda: policy_loop.backgrounds, wordings, models.text_models(), bars.symbols,
        )  # fmt: skip

    def make_provider(models: Models, strategist: Strategist, memory: MemoryReader) -> PlanProvider:
        return assemble_provider(
            settings, strategist, playbooks, market.columns, memory, models.fast, wordings, own.critics,
            market_waits=market_waits,
        )  # fmt: skip

    ours = make_strategist(metered)
    strategist = own.strategist(ours)
    reads = getattr(strategist, "reads", ())
    builder = SnapshotBuilder(engine, market, books.definitions, remembered, expected, playbooks, reads)
    provider = make_provider(metered, strategist, remembered)
    gatherer = None
    if settings.policy_loop.strategist != "rules":
        gatherer = BackgroundBuilder(
            bars, experience.memory.reader(), playbooks, settings.envelope, lambda: slow_loop.last_report
        )
    policy_loop = PolicyLoopService(
        settings, engine, market, builder, provider, judge, playbooks, events, gatherer
    )
    # What a caller puts in the place of a part, and models that it hands over, are asked one at a time.
    early, uncounted = metered.asked_early(), experience.memory.reader(counted=False)
    if (early.fast or early.strategist) and models is None and strategist is ours and not own.critics:
        again = make_provider(early, make_strategist(early), uncounted)
        asked.account.early.ask = partial(policy_loop.ask_early, again)
    evidence = evidence_of(settings, metered.texts, wordings)
    narrator = narrator_of(metered.slow, settings.deliberation, metered.text_models())
    slow_loop = SlowLoopService(
        settings,
        market,
        assemble_reflection(settings, market, narrator, wordings),
        judge,
        books.lifecycle,
        playbooks,
        assemble_trials(settings, market, books.lifecycle, events, ledger),
        policy_loop,
        events,
        market_waits=market_waits,
        evidence=None if settings.judge.replan == "rules" else evidence,
        expectations=experience.expectations,
    )
    return Session(
        settings, market, journal, guard, engine, experience, books.registry, books.lifecycle,
        policy_loop, slow_loop, asked, events, ledger, None if evidence is None else evidence.rows,
        columns_wired=len(market.columns.features.made), has_own_strategist=strategist is not ours,
    )  # fmt: skip
