"""The one place that knows both sides and wires them; nothing is built at import time."""

from collections.abc import Sequence
from pathlib import Path

from agents.judge_agent_client import JudgeAgentClient
from agents.strategies.plan_provider import ReflectingPlanProvider
from agents.strategies.rule_strategist import RuleStrategist
from schemas.config import Settings
from schemas.playbook import PlaybookDefinition
from schemas.proposal import PolicyProposal
from schemas.snapshot import PolicySnapshot
from services.clock import SimulatedClock
from services.high_level_reflection_service import HighLevelReflectionService
from services.journal.writer import JournalWriter
from services.memory.episode_memory import EpisodeMemory
from services.playbooks.expectations import ExpectationBook
from services.playbooks.lifecycle import PlaybookLifecycle
from services.playbooks.registry import PlaybookRegistry, load_playbooks, render_rules
from services.policy_level_reflection_service import PolicyLevelReflectionService
from services.policy_loop_service import PolicyLoopService
from services.shadow_trials import ShadowTrials
from services.slow_loop_service import SlowLoopService
from services.snapshot_builder import SnapshotBuilder
from services.standing_ledger import StandingLedgers
from services.untraded_signals import UntradedSignals
from trading_core.bars import BarSeries
from trading_core.features import compute
from trading_core.regime import regime_columns
from trading_core.rules import LintFinding, RuleColumns, lint, parse
from trading_core.tick_events import TickEventDecoder
from trading_core.tick_guard import TickGuard
from trading_core.trigger_engine import TriggerEngine, event_flags, parameter_record
from worker.session import Session


def assemble(
    settings: Settings,
    bars: BarSeries,
    journal: JournalWriter,
    definitions: Sequence[PlaybookDefinition] | None = None,
) -> Session:
    """A session over `bars`, ready for `begin`."""
    folder = settings.runtime.playbooks
    books = (
        tuple(definitions)
        if definitions is not None
        else load_playbooks(None if folder is None else Path(folder))
    )
    guard, clock = TickGuard(), SimulatedClock(int(bars.times[0]))
    columns = RuleColumns(bars)
    regimes = regime_columns(bars)
    decoder = TickEventDecoder(bars, settings.config_hash, settings.account.name)
    parameters = parameter_record(
        settings.execution,
        settings.envelope,
        heartbeat=settings.policy_loop.heartbeat_bars(bars.timeframe),
        emit_events=True,
    )
    engine = TriggerEngine(bars, event_flags(regimes), parameters, settings.account.cash, guard, decoder)
    memory = EpisodeMemory(settings.memory, clock, guard)
    expectations = ExpectationBook(clock)
    registry = PlaybookRegistry(books, guard, int(bars.times[0]))
    reader = registry.reader()
    lifecycle = PlaybookLifecycle(registry, settings.judge, guard)
    builder = SnapshotBuilder(
        engine,
        regimes,
        compute(bars, feature_names(books)),
        memory.reader(),
        expectations.reader(),
        reader,
        clock,
    )
    judge = JudgeAgentClient(settings.judge, settings.gate)
    provider = ReflectingPlanProvider(
        RuleStrategist(reader, settings.envelope.allowed_directions, settings.envelope.allowed_playbooks),
        None
        if settings.reflection.mode == "off"
        else PolicyLevelReflectionService(settings.reflection, memory=memory.reader()),
        reader,
        linter(bars, columns),
    )
    policy_loop = PolicyLoopService(settings, engine, columns, builder, provider, judge, reader, journal)
    untraded = UntradedSignals(bars, columns, settings.execution)
    ledgers = StandingLedgers(
        bars, columns, regimes, settings.execution, settings.envelope.cooldown_bars, clock
    )
    trials = ShadowTrials(ledgers, lifecycle, settings.gate, settings.judge, journal)
    reflection = HighLevelReflectionService(settings.gate, settings.high_level, grid=ledgers)
    slow_loop = SlowLoopService(
        settings, bars, reflection, judge, lifecycle, reader, trials, untraded, policy_loop, journal
    )
    return Session(
        settings, bars, journal, guard, clock, engine, memory, expectations, registry, lifecycle, untraded,
        policy_loop, slow_loop,
    )  # fmt: skip


def feature_names(definitions: Sequence[PlaybookDefinition]) -> tuple[str, ...]:
    """Every feature that some rule of some playbook reads, sorted."""
    names: set[str] = set()
    for definition in definitions:
        for direction in definition.rules:
            rules = render_rules(definition, direction)
            texts = (
                rules.setup,
                rules.activation,
                rules.stop,
                rules.target,
                rules.invalidation,
                rules.refinement,
            )
            for text in texts:
                if text is not None:
                    names |= parse(text).features
    return tuple(sorted(names - {"open", "high", "low", "close", "volume"}))


def linter(bars: BarSeries, columns: RuleColumns):  # type: ignore[no-untyped-def]
    """A linter of proposals on the bars known at their snapshot."""

    def check(snapshot: PolicySnapshot, proposal: PolicyProposal) -> tuple[LintFinding, ...]:
        texts = {"setup": proposal.setup, "invalidation": proposal.invalidation}
        if proposal.activation is not None:
            texts["activation"] = proposal.activation
        row = bars.close_times.searchsorted(snapshot.known_at, side="right")
        return lint(texts, columns, bars.symbols.index(snapshot.symbol), int(row))

    return check
