"""What the slow loop knows at a moment, as cadence facts and as a request: one form for every runner.

The backtest fills it from its own memory, the worker from the journal and the store; that both decide and ask
the same on the same history is a test. Pure.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from schemas.episode import Episode
from schemas.judge import JudgeAction, ReplanVerdict
from schemas.playbook import PlaybookDefinition
from schemas.settings import Settings
from schemas.slow_reflection import JudgeActionSeen
from schemas.vocabulary import OverrideReason
from services.slow_loop.cadence import CadenceFacts

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


def cadence_facts(
    moment: int,
    settings: Settings,
    timeframe: str,
    cadence: CadenceState,
    fresh: Sequence[Episode],
    definitions: Iterable[PlaybookDefinition],
) -> CadenceFacts:
    """Facts for `due` at a moment; `fresh` are the learnable episodes since the last run, known by then."""
    high_level = settings.high_level
    new = Counter(episode.playbook_id for episode in fresh)
    return CadenceFacts(
        now=moment,
        interval=high_level.interval_for(timeframe),
        started_at=cadence.started_at,
        last_run=cadence.last_run,
        last_attempt=cadence.last_attempt,
        last_structural=cadence.last_structural,
        new_episodes=dict(sorted(new.items())),
        minimum_episodes=high_level.minimum_episodes,
        playbook_minimum={
            definition.id: definition.minimum_episodes
            for definition in definitions
            if definition.minimum_episodes > ORDINARY_MINIMUM
        },
        structural_interval_days=high_level.structural_interval_days,
        surprise=surprise(fresh, settings),
        surprise_seen=surprise(_select_known(fresh, cadence.last_examined), settings),
        safety_override=cadence.override,
        enabled=high_level.enabled,
    )


def surprise(fresh: Sequence[Episode], settings: Settings) -> float:
    """How far the new outcomes lie from the reference in all; 1 brings the next slot forward."""
    return sum(each for _, each in surprises(fresh, settings))


def surprises(fresh: Sequence[Episode], settings: Settings) -> list[tuple[int, float]]:
    """When each new outcome was known (ns), and what it adds to the surprise."""
    limit, reference = settings.high_level.surprise_limit_r, settings.gate.reference_r
    return [(episode.known_at, abs(episode.r - reference) / limit) for episode in fresh]


def _select_known(fresh: Sequence[Episode], moment: int | None) -> Sequence[Episode]:
    return () if moment is None else [episode for episode in fresh if episode.known_at <= moment]


def changes_structure(done: Iterable[JudgeAction]) -> bool:
    """Whether what was carried out uses up the week's structural change: an experiment trades beside it."""
    return any(action.kind != "open_experiment" for action in done)


def actions_seen(
    verdict: ReplanVerdict, verdict_id: str, at: int, waiting: Sequence[JudgeAction] = ()
) -> list[JudgeActionSeen]:
    """The actions of a verdict as later requests show them; `at` is when they were carried out, ns.

    Those that wait for a person, or were declined, are not among them.
    """
    return [
        JudgeActionSeen(
            verdict_id=verdict_id,
            at=at,
            kind=action.kind,
            playbook_id=action.playbook_id,
            regime=action.regime,
            parameter=action.parameter,
            value=action.value,
        )
        for action in verdict.actions
        if action not in waiting
    ]
