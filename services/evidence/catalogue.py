"""The closed catalogue: each question that a run can answer, with its unit and where the answer stands.

A question is read-only and has no text in it: parameters are a subject and the moment of the reader. Means of
a report are winsorised and of complete blocks; the plain figure of all trades answers as well.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from schemas.episode import Episode
from services.evidence.facts import Unit


def _r(episodes: Sequence[Episode]) -> list[float]:
    return [episode.r for episode in episodes]


def _share(chosen: Callable[[Episode], bool]) -> Callable[[Sequence[Episode]], float]:
    return lambda episodes: fmean(chosen(episode) for episode in episodes)


def _number(chosen: Callable[[Episode], bool]) -> Callable[[Sequence[Episode]], float]:
    return lambda episodes: float(sum(chosen(episode) for episode in episodes))


def won(episode: Episode) -> bool:
    """Whether the trade earned anything, after costs."""
    return episode.r > 0


def lost(episode: Episode) -> bool:
    """Whether the trade lost anything, after costs."""
    return episode.r < 0


@dataclass(frozen=True)
class Question:
    """One question of the catalogue.

    Attributes:
        unit: of the answer.
        cluster: fields of a graded cluster that answer it, the first one being the figure of the gate.
        marginal: field of a regime's summary.
        episodes: the answer of the trades themselves; asked with at least one.
    """

    unit: Unit
    cluster: tuple[str, ...] = ()
    marginal: str | None = None
    episodes: Callable[[Sequence[Episode]], float] | None = None


CATALOGUE: dict[str, Question] = {
    "trades": Question("count", ("n", "counted"), "n", lambda episodes: float(len(episodes))),
    "winners": Question("count", episodes=_number(won)),
    "losers": Question("count", episodes=_number(lost)),
    "longs": Question("count", episodes=_number(lambda episode: episode.direction == "long")),
    "shorts": Question("count", episodes=_number(lambda episode: episode.direction == "short")),
    "blocks": Question("count", ("blocks",)),
    "mean_r": Question(
        "r", ("mean_r", "mean_raw_r"), "mean_r", lambda episodes: round(fmean(_r(episodes)), 9)
    ),
    "median_r": Question("r", episodes=lambda episodes: round(median(_r(episodes)), 9)),
    "total_r": Question("r", episodes=lambda episodes: round(sum(_r(episodes)), 9)),
    "best_r": Question("r", episodes=lambda episodes: max(_r(episodes))),
    "worst_r": Question("r", episodes=lambda episodes: min(_r(episodes))),
    "lower_r": Question("r", ("lower_r", "fixed_lower_r")),
    "upper_r": Question("r", ("upper_r", "fixed_upper_r")),
    "detectable_r": Question("r", ("smallest_detectable_r",)),
    "e_value": Question("score", ("e_value", "e_gaining", "e_losing")),
    "e_gaining": Question("score", ("e_gaining",)),
    "e_losing": Question("score", ("e_losing",)),
    "win_rate": Question("share", ("win_rate",), "win_rate", _share(won)),
    "loss_rate": Question("share", episodes=_share(lost)),
    "hold_p50": Question(
        "bars", ("hold_p50_bars",), episodes=lambda episodes: median(item.hold_bars for item in episodes)
    ),
    "hold_p90": Question("bars", ("hold_p90_bars",)),
    "hold_mean": Question("bars", episodes=lambda episodes: fmean(item.hold_bars for item in episodes)),
    "hold_z": Question("score", ("hold_calibration_z",)),
    "mae_p80": Question("r", ("mae_p80_r",)),
    "mfe_p50": Question(
        "r", ("mfe_p50_r",), episodes=lambda episodes: median(item.mfe_r for item in episodes)
    ),
    "psr": Question("score", ("psr",)),
    "dsr": Question("score", ("dsr",)),
    "track_record": Question("count", ("minimum_track_record",)),
    "family_size": Question("count", ("family_size",)),
    "alpha": Question("score", ("alpha",)),
    "pnl": Question("money", episodes=lambda episodes: sum(item.pnl for item in episodes)),
    "fees": Question("money", episodes=lambda episodes: sum(item.fees for item in episodes)),
    # Answered by the run, its report or a version as a whole: see `RunFacts`.
    "failures": Question("count"),
    "playbooks": Question("count"),
    "symbols": Question("count"),
    "clusters": Question("count"),
    "recommendations": Question("count"),
    "reports": Question("count"),
    "parameter": Question("score"),
    "version": Question("count"),
    "price": Question("price"),
    "expected_hold_p50": Question("bars"),
    "expected_hold_p90": Question("bars"),
    "expected_mae_p80": Question("r"),
    "expected_mfe_p50": Question("r"),
}
