"""What the paper trades of a trial have shown: for its promotion or end, and for the next report."""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from math import fsum
from typing import Protocol

import numpy as np

from schemas.episode import Episode
from schemas.playbook import PlaybookDefinition
from schemas.settings import GateSettings
from services.high_level.trade_bounds import bounds_of, trades_of
from services.statistics.blocks import Trades
from services.statistics.calendar_units import BlockUnit, unit_numbers, unit_of_timeframe, unit_starts
from services.statistics.track import Bounds, Track

Evidence = dict[str, float | int | str | None]


class PaperLedger(Protocol):
    """The trades of a version on paper."""

    @property
    def episodes(self) -> Sequence[Episode]:
        """Those that are resolved, in order."""
        ...

    @property
    def open_since(self) -> int | None:
        """Entry of the oldest that is open, ns; None where none is."""
        ...


class EpisodeKey(tuple[Episode, ...]):
    """Episodes as a key: those of one ledger differ in number or in the last, so no other is hashed."""

    __slots__ = ()

    def __hash__(self) -> int:
        """Of their number and the last."""
        return hash((len(self), self[-1].episode_id if self else None))


def first_waiting(episodes: Iterable[Episode], unit: BlockUnit, at_ns: int, *open_since: int | None) -> int:
    """Where the blocks end that count at a time, ns: no trade that comes later changes anything before."""
    waiting = [episode.entry_label for episode in episodes if episode.exit_label > at_ns]
    since = min((at_ns, *waiting, *(entry for entry in open_since if entry is not None)))
    return int(unit_starts(unit_numbers(since, unit), unit))


@lru_cache(maxsize=64)
def trial_track(
    episodes: EpisodeKey, gate: GateSettings, unit: BlockUnit, definition: PlaybookDefinition | None = None
) -> Track:
    """The blocks of a trial's settled trades; kept, because most slots complete no block."""
    return Track(trades_of(episodes), unit, gate.reference_r, bounds_of(definition, gate))


def trial_evidence(
    episodes: Sequence[Episode],
    gate: GateSettings,
    at_ns: int,
    definition: PlaybookDefinition | None = None,
    open_since: int | None = None,
) -> Evidence:
    """Trades, complete blocks, means, and e-values of both claims without restarts, at a time.

    Episodes of no-learn zones teach nothing here either.
    """
    learnable = [episode for episode in episodes if not episode.no_learn]
    if not learnable:
        nothing: Evidence = dict.fromkeys(("mean_r", "mean_raw_r", "e_value", "e_value_below"))
        return {"n": 0, "blocks": 0, "reference_r": gate.reference_r} | nothing
    unit = unit_of_timeframe(gate.block, learnable[0].timeframe)
    end = first_waiting(learnable, unit, at_ns, open_since)
    settled = EpisodeKey(episode for episode in learnable if episode.entry_label < end)
    seen = trial_track(settled, gate, unit, definition).at(at_ns)
    return {
        "n": sum(episode.exit_label <= at_ns for episode in learnable),
        "blocks": seen.blocks,
        "mean_r": seen.mean_r,
        "mean_raw_r": seen.mean_raw,
        "reference_r": seen.reference,
        "e_value": seen.proof_of("gaining"),
        "e_value_below": seen.proof_of("losing"),
    }


def paired_evidence(
    candidate: PaperLedger, incumbent: PaperLedger, gate: GateSettings, at_ns: int
) -> Evidence:
    """E-value of what a candidate made more than the incumbent on the same bars, in place of its own.

    Both were traded on paper, one unit a trade. A block holds the trades of both by entry, the incumbent's
    with the sign turned, so its sum is the difference of what they made; the hypothesis is that it is 0 on
    average.
    """
    mine, theirs = (
        [episode for episode in ledger.episodes if not episode.no_learn] for ledger in (candidate, incumbent)
    )
    shown: Evidence = {"difference_r": None}
    both = [*mine, *theirs]
    if not both:
        return shown
    unit = unit_of_timeframe(gate.block, both[0].timeframe)
    end = first_waiting(both, unit, at_ns, candidate.open_since, incumbent.open_since)
    settled = (
        EpisodeKey(episode for episode in part if episode.entry_label < end) for part in (mine, theirs)
    )
    seen = _track_difference(*settled, gate, unit).at(at_ns)
    total = None if seen.mean_raw is None else seen.mean_raw * seen.counted
    return shown | {
        "blocks": seen.blocks,
        "difference_r": None if total is None else round_figure(total / max(seen.blocks, 1)),
        "e_value": seen.proof_of("gaining"),
    }


@lru_cache(maxsize=64)
def _track_difference(mine: EpisodeKey, theirs: EpisodeKey, gate: GateSettings, unit: BlockUnit) -> Track:
    trades = trades_of(mine + theirs)
    sign = np.concatenate((np.ones(len(mine)), -np.ones(len(theirs))))
    reach = max(gate.winsor_high, -gate.winsor_low)
    bounds = Bounds(-reach, reach, strict=gate.strict)
    return Track(Trades(trades.entry_ns, trades.exit_ns, trades.r * sign), unit, 0.0, bounds)


def beside(incumbent: PaperLedger) -> Evidence:
    """Trades and plain mean of what is in force, on paper on the bars of a trial."""
    r = [episode.r for episode in incumbent.episodes if not episode.no_learn]
    return {"incumbent_n": len(r), "incumbent_r": round_figure(fsum(r) / len(r)) if r else None}


def gains(evidence: Mapping[str, float | int | str | None]) -> bool:
    """Whether both means lie above the reference: the side that evidence of a gain has to be on."""
    reference = evidence.get("reference_r")
    means = evidence.get("mean_r"), evidence.get("mean_raw_r")
    return isinstance(reference, float) and all(
        isinstance(mean, float) and mean > reference for mean in means
    )


def round_figure(value: float) -> float:
    """Nine significant digits: what a report prints and a hash keeps."""
    return float(f"{value:.9g}")
