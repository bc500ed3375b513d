"""What the slow loop knows at a moment, as cadence facts and as a request: one form for every runner.

The backtest fills it from its own memory, the worker from the journal and the store; that both decide and ask
the same on the same history is a test. Pure.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from schemas.canonical import ns_to_datetime
from schemas.config import Settings
from schemas.episode import Episode
from schemas.judge import JudgeAction, ReplanVerdict
from schemas.playbook import PlaybookDefinition
from schemas.reflection import (
    DeferredItem,
    HighLevelReflectionRequest,
    JudgeActionSeen,
    OpenEntry,
    UntradedSignal,
)
from schemas.trials import TrialLedger
from schemas.vocabulary import OverrideReason
from services.slow_loop.cadence import CadenceFacts, Run

ORDINARY_MINIMUM = 20


@dataclass(frozen=True)
class CadenceState:
    """Where the slow loop of a run stands; times in ns, slots of runs. See `CadenceFacts`."""

    started_at: int
    last_run: int | None = None
    last_attempt: int | None = None
    last_structural: int | None = None
    override: OverrideReason | None = None
    last_examined: int | None = None


@dataclass(frozen=True)
class RequestFacts:
    """What a request is made of.

    Attributes:
        known_at: the clock; nothing in here was known later.
        window_start: only episodes entered from here on are examined, and only actions from here on shown.
        evidence: learnable episodes known at the slot, by time.
        counted_before: how many of them the last run knew.
        judge_history: every action of the judge so far.
        epochs: versions of each playbook that became active after its first, from whatever reason.
        ledger: what was tried on these bars before the run; None where nothing was.
    """

    known_at: int
    timeframe: str
    window_start: int
    evidence: Sequence[Episode]
    counted_before: int = 0
    judge_history: Sequence[JudgeActionSeen] = ()
    deferred: tuple[DeferredItem, ...] = ()
    untraded: tuple[UntradedSignal, ...] = ()
    shadow_trials: tuple[dict[str, float | int | str | None], ...] = ()
    drift_inputs: Mapping[str, Any] = field(default_factory=dict)
    epochs: Mapping[str, int] = field(default_factory=dict)
    epoch_starts: Mapping[str, int] = field(default_factory=dict)
    tested: tuple[str, ...] = ()
    open_entries: tuple[OpenEntry, ...] = ()
    same_rules: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    ledger: TrialLedger | None = None

    def batch(self) -> list[Episode]:
        """The episodes to examine."""
        return [one for one in self.evidence if one.entry_label >= self.window_start]


def cadence_facts(
    moment: int,
    settings: Settings,
    timeframe: str,
    standing: CadenceState,
    fresh: Sequence[Episode],
    definitions: Iterable[PlaybookDefinition],
) -> CadenceFacts:
    """Facts for `due` at a moment; `fresh` are the learnable episodes since the last run, known by then."""
    high_level = settings.high_level
    new = Counter(one.playbook_id for one in fresh)
    return CadenceFacts(
        now=moment,
        interval=high_level.interval_for(timeframe),
        started_at=standing.started_at,
        last_run=standing.last_run,
        last_attempt=standing.last_attempt,
        last_structural=standing.last_structural,
        new_episodes=dict(sorted(new.items())),
        minimum_episodes=high_level.minimum_episodes,
        playbook_minimum={
            one.id: one.minimum_episodes for one in definitions if one.minimum_episodes > ORDINARY_MINIMUM
        },
        structural_interval_days=high_level.structural_interval_days,
        surprise=surprise(fresh, settings),
        surprise_seen=surprise(_known_by(fresh, standing.last_examined), settings),
        safety_override=standing.override,
        enabled=high_level.enabled,
    )


def surprise(fresh: Sequence[Episode], settings: Settings) -> float:
    """How far the new outcomes lie from the reference in all; 1 brings the next slot forward."""
    return sum(each for _, each in surprises(fresh, settings))


def surprises(fresh: Sequence[Episode], settings: Settings) -> list[tuple[int, float]]:
    """When each new outcome was known (ns), and what it adds to the surprise."""
    limit, reference = settings.high_level.surprise_limit_r, settings.gate.reference_r
    return [(one.known_at, abs(one.r - reference) / limit) for one in fresh]


def _known_by(fresh: Sequence[Episode], moment: int | None) -> Sequence[Episode]:
    return () if moment is None else [one for one in fresh if one.known_at <= moment]


def build_request(run: Run, facts: RequestFacts) -> HighLevelReflectionRequest:
    """The request of one run; its hash names what was asked, whoever asks."""
    acted = tuple(one for one in facts.judge_history if one.at >= facts.window_start)
    return HighLevelReflectionRequest(
        slot=run.slot,
        known_at=facts.known_at,
        window_start=ns_to_datetime(facts.window_start),
        window_end=ns_to_datetime(run.slot),
        timeframe=facts.timeframe,
        episode_ids=tuple(one.episode_id for one in facts.batch()),
        new_episodes=len(facts.evidence) - facts.counted_before,
        judge_actions=tuple(dict.fromkeys(one.verdict_id for one in acted)),
        judge_history=acted,
        deferred_items=facts.deferred,
        untraded_signals=facts.untraded,
        shadow_trials=facts.shadow_trials,
        drift_inputs=dict(facts.drift_inputs),
        structural_override=run.override,
        structural_allowed=run.structural_allowed,
        epochs=dict(sorted(facts.epochs.items())),
        epoch_starts=dict(facts.epoch_starts),
        tested_before=facts.tested,
        open_entries=facts.open_entries,
        same_rules=dict(facts.same_rules),
        ledger=facts.ledger,
    )


def changes_structure(done: Iterable[JudgeAction]) -> bool:
    """Whether what was carried out uses up the week's structural change: an experiment trades beside it."""
    return any(action.kind != "open_experiment" for action in done)


def actions_seen(verdict: ReplanVerdict, verdict_id: str, at: int) -> list[JudgeActionSeen]:
    """The actions of a verdict as later requests show them; `at` is when they were carried out, ns."""
    return [
        JudgeActionSeen(
            verdict_id=verdict_id,
            at=at,
            kind=one.kind,
            playbook_id=one.playbook_id,
            regime=one.regime,
            parameter=one.parameter,
            value=one.value,
        )
        for one in verdict.actions
    ]
