"""What the paper trades of a trial have shown: for its promotion or end, and for the next report."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import fsum
from typing import Protocol

import numpy as np

from schemas.episode import Episode
from schemas.playbook import PlaybookDefinition
from schemas.settings import GateSettings
from services.high_level.trade_bounds import bounds_of, trades_of
from services.statistics.blocks import Trades
from services.statistics.calendar_units import unit_of_timeframe
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


@lru_cache(maxsize=64)
def trial_track(
    episodes: EpisodeKey,
    gate: GateSettings,
    definition: PlaybookDefinition | None = None,
) -> Track | None:
    """The blocks of a trial's trades; None without any. Kept, because most slots bring a trial no trade.

    Episodes of no-learn zones teach nothing here either.
    """
    learnable = [episode for episode in episodes if not episode.no_learn]
    if not learnable:
        return None
    unit = unit_of_timeframe(gate.block, learnable[0].timeframe)
    return Track(trades_of(learnable), unit, gate.reference_r, bounds_of(definition, gate))


def trial_evidence(
    episodes: Sequence[Episode],
    gate: GateSettings,
    at_ns: int,
    definition: PlaybookDefinition | None = None,
    open_since: int | None = None,
) -> Evidence:
    """Trades, complete blocks, means, and e-values of both claims without restarts, at a time."""
    track = trial_track(EpisodeKey(episodes), gate, definition)
    if track is None:
        nothing: Evidence = dict.fromkeys(("mean_r", "mean_raw_r", "e_value", "e_value_below"))
        return {"n": 0, "blocks": 0, "reference_r": gate.reference_r} | nothing
    seen = track.at(at_ns, open_since)
    return {
        "n": seen.n,
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
    sign = np.concatenate((np.ones(len(mine)), -np.ones(len(theirs))))
    trades = trades_of(both)
    reach = max(gate.winsor_high, -gate.winsor_low)
    opened = [since for since in (candidate.open_since, incumbent.open_since) if since is not None]
    track = Track(
        Trades(trades.entry_ns, trades.exit_ns, trades.r * sign),
        unit_of_timeframe(gate.block, both[0].timeframe),
        0.0,
        Bounds(-reach, reach, strict=gate.strict),
        min(opened, default=None),
    )
    seen = track.at(at_ns)
    total = None if seen.mean_raw is None else seen.mean_raw * seen.counted
    return shown | {
        "blocks": seen.blocks,
        "difference_r": None if total is None else round_figure(total / max(seen.blocks, 1)),
        "e_value": seen.proof_of("gaining"),
    }


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
