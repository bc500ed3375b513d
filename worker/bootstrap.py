"""The one place that knows both sides and wires them; nothing is built at import time."""

import os
from collections.abc import Sequence
from functools import partial

from agents.judging import assemble_judge, evidence_of
from agents.strategies.configured import configured_strategist
from agents.strategies.model_strategist import PlanReaders
from agents.strategies.plan_provider import assemble_provider
from schemas.playbook import PlaybookDefinition
from schemas.settings import Settings
from schemas.trials import NO_TRIALS, TrialLedger
from services.context import RunContext
from services.high_level.narrator import narrator_of
from services.journal.parking import ParkingJournal
from services.journal.writer import JournalWriter
from services.memory.experience import assemble_experience
from services.playbooks.assembly import assemble_playbooks
from services.policy_loop.account_engine import account_engine
from services.policy_loop.background import BackgroundBuilder
from services.policy_loop.snapshot_builder import SnapshotBuilder, names_for_replies
from services.policy_loop_service import PolicyLoopService
from services.ports import MemoryReader, PlanProvider, Strategist
from services.slow_loop.assembly import assemble_reflection, assemble_trials
from services.slow_loop_service import SlowLoopService
from trading_core.bars import BarSeries
from trading_core.market import Market
from worker.models import NO_OVERRIDES, Models, Overrides, assemble_models
from worker.session import Session


def assemble(
    settings: Settings,
    bars: BarSeries,
    journal: JournalWriter,
    definitions: Sequence[PlaybookDefinition] | None = None,
    own: Overrides = NO_OVERRIDES,
    *,
    market_waits: bool = True,
    ledger: TrialLedger = NO_TRIALS,
) -> Session:
    """A session over `bars`, ready for `begin`.

    Args:
        settings: the resolved configuration.
        bars: all bars that the session will see, or the first of those that will come.
        journal: empty writer.
        definitions: playbooks; None loads the configured folder or the embedded ones.
        own: what the caller puts around parts, or in their place.
        market_waits: no bar comes while a model thinks.
        ledger: what was tried on these bars before.

    Raises:
        ConfigError: a playbook file is wrong, mode `full` or the strategist has no model, or nothing asks the
            critics.
    """
    first, market = int(bars.times[0]), Market.of(bars, settings.policy_loop.regime)
    events = ParkingJournal(journal)
    context = RunContext.of(settings, bars.symbols, market.clock, events, market_waits)
    wordings = context.wordings
    books = assemble_playbooks(settings, definitions, context.guard, first)
    called = wordings.at(first).symbols.values() or bars.symbols
    names = names_for_replies(books.definitions, called, bars.timeframe)
    request = assemble_models(context, os.environ, own, names=names)
    metered = request.accounted
    engine = account_engine(context, market)
    experience = assemble_experience(settings.memory, market.clock, context.guard, books.reader.rules)
    remembered, expected = experience.memory.reader(), experience.expectations.reader()
    judge = own.judge(assemble_judge(settings, metered.judge, wordings))
    readers = PlanReaders(
        books.reader,
        lambda name: policy_loop.policies[name].proposal if name in policy_loop.policies else None,
        lambda snapshot: policy_loop.backgrounds.get(snapshot.content_hash),
    )

    def make_strategist(models: Models) -> Strategist:
        texts = models.text_models()
        return configured_strategist(context, readers, models.strategist, texts, bars.symbols)

    def make_provider(models: Models, strategist: Strategist, memory: MemoryReader) -> PlanProvider:
        return assemble_provider(
            context, strategist, books.reader, market.columns, memory, models.fast, own.critics
        )

    ours = make_strategist(metered)
    strategist = own.strategist(ours)
    reads = getattr(strategist, "reads", ())
    builder = SnapshotBuilder(engine, market, books.definitions, remembered, expected, books.reader, reads)
    provider = make_provider(metered, strategist, remembered)
    gatherer = None
    if settings.policy_loop.strategist != "rules":
        gatherer = BackgroundBuilder(
            bars, experience.memory.reader(), books.reader, settings.envelope, lambda: slow_loop.last_report
        )
    policy_loop = PolicyLoopService(context, market, engine, builder, provider, judge, books.reader, gatherer)
    # What a caller puts in the place of a part, and models that it hands over, are asked one at a time.
    early, uncounted = metered.asked_early(), experience.memory.reader(counted=False)
    if (early.fast or early.strategist) and own.models is None and strategist is ours and not own.critics:
        again = make_provider(early, make_strategist(early), uncounted)
        request.account.early.ask = partial(policy_loop.ask_early, again)
    evidence = evidence_of(settings, metered.texts, wordings)
    narrator = narrator_of(metered.slow, settings.deliberation, metered.text_models())
    slow_loop = SlowLoopService(
        context,
        market,
        books,
        assemble_reflection(settings, market, narrator, wordings),
        judge,
        assemble_trials(context, market, books, experience.expectations, ledger),
        policy_loop,
        None if settings.judge.replan == "rules" else evidence,
    )
    return Session(
        context, market, journal, events, engine, experience, books, policy_loop, slow_loop, request, ledger,
        None if evidence is None else evidence.rows,
        columns_wired=len(market.columns.features.made), has_own_strategist=strategist is not ours,
    )  # fmt: skip
