"""The one place that knows both sides and wires them; nothing is built at import time."""

import os
from collections.abc import Sequence
from pathlib import Path

from agents.judge_agent_client import JudgeAgentClient
from agents.language_models.cassette import Cassette
from agents.strategies.model_strategist import ModelStrategist
from agents.strategies.plan_bases import FrozenPlan
from agents.strategies.plan_provider import Linter, ReflectingPlanProvider
from agents.strategies.rule_strategist import RuleStrategist
from prompts import PromptTemplate
from schemas.background import DecisionBackground
from schemas.errors import ConfigError
from schemas.playbook import PlaybookDefinition
from schemas.proposal import PolicyProposal
from schemas.settings import Settings
from schemas.snapshot import PolicySnapshot
from schemas.trials import NO_TRIALS, TrialLedger
from services.clock import SimulatedClock
from services.deliberation.forms import CORRECTION, CRITIQUE
from services.deliberation.text_models import TextModels
from services.high_level_reflection_service import HighLevelReflectionService
from services.journal.parking import ParkingJournal
from services.journal.writer import JournalWriter
from services.memory.episode_memory import EpisodeMemory
from services.model_calls.account import ModelAccount
from services.model_calls.wording import Wordings
from services.playbooks.expectations import ExpectationBook
from services.playbooks.lifecycle import PlaybookLifecycle
from services.playbooks.registry import PlaybookRegistry, load_playbooks, render_rules
from services.playbooks.rendering import rule_texts
from services.policy_level_reflection_service import PolicyLevelReflectionService
from services.policy_loop.background import BackgroundBuilder
from services.policy_loop.invariant_context import tolerances
from services.policy_loop.snapshot_builder import SnapshotBuilder
from services.policy_loop_service import PolicyLoopService
from services.ports import BackgroundReader, LanguageModel, PlaybookReader, Strategist
from services.slow_loop.shadow_ledger import ShadowLedgers
from services.slow_loop.shadow_trials import ShadowTrials
from services.slow_loop_service import SlowLoopService
from services.statistics.calendar_units import later_starts, unit_of_timeframe
from trading_core.bars import BarSeries
from trading_core.kernel.fresh import bucket_bits, event_flags, parameter_record
from trading_core.live.growing_bars import GrowingBars
from trading_core.live.step import LiveStep
from trading_core.regime import RegimeColumns, RegimeTracker
from trading_core.rule_bank import SharedColumns
from trading_core.rules import LintFinding, RuleColumns, lint, parse
from trading_core.tick_events import TickEventDecoder
from trading_core.tick_guard import TickGuard
from trading_core.trigger_engine import TriggerEngine
from worker.models import Models, RecordedPast, accounted_models, configured_cassette, configured_models
from worker.session import Session


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

    Raises:
        ConfigError: a playbook file is wrong, or mode `full` or the strategist has no model.
    """
    books = given_playbooks(settings, definitions)
    guard, clock = TickGuard(), SimulatedClock(int(bars.times[0]))
    events = ParkingJournal(journal)
    tape = cassette if cassette is not None else configured_cassette(settings)
    asked = models or (Models() if tape is not None else configured_models(settings, guard, os.environ))
    account = ModelAccount(settings.llm, events, clock)
    minds = accounted_models(settings, asked, account, guard, tape, recorded)
    columns = RuleColumns(bars)
    tracker = RegimeTracker(bars, settings.policy_loop.regime, columns.features)
    regimes = tracker.columns
    engine = _engine(settings, bars, columns, regimes, guard)
    registry = PlaybookRegistry(books, guard, int(bars.times[0]))
    playbooks = registry.reader()
    memory = EpisodeMemory(settings.memory, clock, guard, rules_of=playbooks.rules)
    expectations, remembered = ExpectationBook(clock, playbooks.rules), memory.reader()
    names = columns.features.load(feature_names(books, bars.timeframe))
    for text in playbook_rules(books, bars.timeframe):  # any other rule is computed where it is needed
        for s in range(len(bars.symbols)):
            columns.place(text, s)
    builder = SnapshotBuilder(
        engine, regimes, columns.features, names, remembered, expectations.reader(), playbooks, clock
    )
    if settings.judge.replan != "rules" and minds.judge is None:
        raise ConfigError("judge.replan asks a model but none was given: use 'rules'")
    wordings = Wordings.of_run(bars.symbols, anonymise=settings.llm.anonymise)
    judge = JudgeAgentClient(
        settings.judge,
        settings.gate,
        minds.judge,
        reflection_off=settings.reflection.mode == "off",
        wordings=wordings,
        check_reasons=settings.deliberation.check_reasons,
    )

    def frozen(policy_id: str) -> PolicyProposal | None:
        policy = policy_loop.policies.get(policy_id)
        return None if policy is None else policy.proposal

    def background(snapshot: PolicySnapshot) -> DecisionBackground | None:
        return policy_loop.backgrounds.get(snapshot.content_hash)

    strategist = _strategist(settings, playbooks, minds, frozen, background, wordings)
    reflection = None
    if settings.reflection.mode != "off":
        reflection = PolicyLevelReflectionService(
            settings.reflection,
            memory=remembered,
            model=minds.fast,
            recorded=True,
            market_waits=market_waits,
            wordings=wordings,
        )
    provider = ReflectingPlanProvider(strategist, reflection, playbooks, linter(bars, columns))
    gatherer = None
    if settings.policy_loop.strategist != "rules":
        gatherer = BackgroundBuilder(
            bars, memory.reader(), playbooks, settings.envelope, lambda: slow_loop.last_report
        )
    policy_loop = PolicyLoopService(
        settings, engine, columns, builder, provider, judge, playbooks, events, gatherer
    )
    lifecycle = PlaybookLifecycle(registry, settings.judge, guard, settings.gate.block)
    ledgers = ShadowLedgers(bars, columns, regimes, settings.execution, settings.envelope, clock)
    slow_loop = SlowLoopService(
        settings,
        bars,
        HighLevelReflectionService(
            settings, grid=ledgers, model=minds.slow, wordings=wordings, texts=minds.text_models()
        ),
        judge,
        lifecycle,
        playbooks,
        ShadowTrials(ledgers, lifecycle, settings.gate, settings.judge, events, ledger),
        policy_loop,
        events,
        columns,
    )
    live = None
    if isinstance(bars, GrowingBars):
        live = LiveStep(bars, columns, tracker, engine, settings.envelope.no_trade_windows)
    return Session(
        settings, bars, journal, guard, clock, engine, memory, expectations, registry, lifecycle,
        policy_loop, slow_loop, account, asked, live, events, ledger,
        columns_wired=len(columns.features.made),
    )  # fmt: skip


def given_playbooks(
    settings: Settings, definitions: Sequence[PlaybookDefinition] | None
) -> Sequence[PlaybookDefinition]:
    """The given playbooks, or those of the configured folder, or the embedded ones.

    Raises:
        ConfigError: a playbook file is wrong.
    """
    return definitions if definitions is not None else load_playbooks(_folder(settings))


def _folder(settings: Settings) -> Path | None:
    return None if settings.runtime.playbooks is None else Path(settings.runtime.playbooks)


def _engine(
    settings: Settings, bars: BarSeries, columns: RuleColumns, regimes: RegimeColumns, guard: TickGuard
) -> TriggerEngine:
    parameters = parameter_record(
        settings.execution,
        settings.envelope,
        heartbeat=settings.policy_loop.heartbeat_bars(bars.timeframe),
        emit_events=True,
    )
    windows = settings.envelope.no_trade_windows
    decoder = TickEventDecoder(bars, settings.config_hash, settings.account.name, windows)
    flags = event_flags(regimes, bars, windows)
    buckets = bucket_bits(bars.symbols, settings.envelope.correlation_buckets)
    edges = None
    if settings.envelope.max_entries_per_block:  # a bar belongs to the block of its label, as in the gate
        unit = unit_of_timeframe(settings.gate.block, bars.timeframe)
        edges = later_starts(int(bars.times[0]), unit) + (0 if bars.label == "close" else bars.bar_ns)
    engine = TriggerEngine(
        bars, flags, parameters, settings.account.cash, guard, decoder,
        columns=SharedColumns(columns), buckets=buckets, block_edges=edges,
    )  # fmt: skip
    engine.set_kill_switch(settings.envelope.kill_switch)
    return engine


def _strategist(
    settings: Settings,
    playbooks: PlaybookReader,
    models: Models,
    frozen: FrozenPlan,
    background: BackgroundReader,
    wordings: Wordings,
) -> Strategist:
    envelope = settings.envelope
    rules = RuleStrategist(playbooks, envelope.allowed_directions, envelope.allowed_playbooks)
    if settings.policy_loop.strategist == "rules":
        return rules
    if models.strategist is None:
        raise ConfigError("policy_loop.strategist asks a model but none was given: use 'rules'")
    texts = models.text_models()
    return model_strategist(
        settings, models.strategist, rules, playbooks, frozen, background, wordings,
        texts=texts if texts.has(CRITIQUE, CORRECTION) else None,
    )  # fmt: skip


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


def feature_names(definitions: Sequence[PlaybookDefinition], timeframe: str) -> tuple[str, ...]:
    """Every feature that some rule of some playbook for this timeframe reads, sorted."""
    names = {name for text in playbook_rules(definitions, timeframe) for name in parse(text).features}
    return tuple(sorted(names - {"open", "high", "low", "close", "volume"}))


def playbook_rules(definitions: Sequence[PlaybookDefinition], timeframe: str) -> tuple[str, ...]:
    """Every rule of every playbook for this timeframe, each once, in the order of the files."""
    texts: dict[str, None] = {}
    for definition in definitions:
        if definition.timeframes and timeframe not in definition.timeframes:
            continue
        for direction in definition.rules:
            texts.update(dict.fromkeys(rule_texts(render_rules(definition, direction)).values()))
    return tuple(texts)


def linter(bars: BarSeries, columns: RuleColumns) -> Linter:
    """A linter of proposals on the bars known at their snapshot."""

    def check(snapshot: PolicySnapshot, proposal: PolicyProposal) -> tuple[LintFinding, ...]:
        texts = {"setup": proposal.setup, "invalidation": proposal.invalidation}
        if proposal.activation is not None:
            texts["activation"] = proposal.activation
        row = int(bars.close_times.searchsorted(snapshot.known_at, side="right"))
        return tuple(lint(texts, columns, bars.symbols.index(snapshot.symbol), row))

    return check
