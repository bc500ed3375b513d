"""The closed catalogue: each question that a run can answer, with its unit and where the answer stands.

A question is read-only and has no text in it: parameters are a subject and the moment of the reader. Means of
a report are winsorised and of complete blocks; the plain figure of all trades answers as well.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from schemas.episode import Episode
from schemas.vocabulary import TIMEFRAME_SECONDS
from services.evidence.facts import Unit

DAY_SECONDS = 86_400
NS_PER_DAY = DAY_SECONDS * 1_000_000_000


Measure = Callable[[Sequence[Episode]], float | None]


def _r(episodes: Sequence[Episode]) -> list[float]:
    return [episode.r for episode in episodes]


def _share(chosen: Callable[[Episode], bool]) -> Measure:
    return lambda episodes: fmean(chosen(episode) for episode in episodes)


def _number(chosen: Callable[[Episode], bool]) -> Measure:
    return lambda episodes: float(sum(chosen(episode) for episode in episodes))


def won(episode: Episode) -> bool:
    """Whether the trade earned anything, after costs."""
    return episode.r > 0


def is_loss(episode: Episode) -> bool:
    """Whether the trade lost anything, after costs."""
    return episode.r < 0


def _holds(episodes: Sequence[Episode]) -> list[float]:
    return [float(episode.hold_bars) for episode in episodes]


def _days_of_bars(episodes: Sequence[Episode]) -> list[float]:
    """Holds in days of the timeframe: a bar of a day is a day, weekends left out."""
    return [item.hold_bars * TIMEFRAME_SECONDS.get(item.timeframe, 0) / DAY_SECONDS for item in episodes]


def _calendar_days(episodes: Sequence[Episode]) -> list[float]:
    return [(item.exit_label - item.entry_label) / NS_PER_DAY for item in episodes]


def _of_days(over: Callable[[list[float]], float]) -> tuple[Measure, ...]:
    """A hold in days, of the timeframe and of the calendar."""
    return (lambda episodes: over(_days_of_bars(episodes)), lambda episodes: over(_calendar_days(episodes)))


def _factor_of(results: Sequence[float]) -> float | None:
    """What the winners brought over what the losers took; None where nothing was lost."""
    gained, given = sum(r for r in results if r > 0), -sum(r for r in results if r < 0)
    return gained / given if given else None


@dataclass(frozen=True)
class Question:
    """One question of the catalogue.

    Attributes:
        unit: of the answer.
        cluster: fields of a graded cluster that answer it, the first one being the figure of the gate.
        marginal: field of a regime's summary.
        episodes: the answer of the trades themselves; asked with at least one.
        further: other ways to reckon the same from the trades.
    """

    unit: Unit
    cluster: tuple[str, ...] = ()
    marginal: str | None = None
    episodes: Measure | None = None
    further: tuple[Measure, ...] = ()


CATALOGUE: dict[str, Question] = {
    "trades": Question("count", ("n", "counted"), "n", lambda episodes: float(len(episodes))),
    "winners": Question("count", episodes=_number(won)),
    "losers": Question("count", episodes=_number(is_loss)),
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
    "loss_rate": Question("share", episodes=_share(is_loss)),
    "hold_p50": Question(
        "bars", ("hold_p50_bars",), episodes=lambda episodes: median(item.hold_bars for item in episodes)
    ),
    "hold_p90": Question("bars", ("hold_p90_bars",)),
    "hold_mean": Question("bars", episodes=lambda episodes: fmean(item.hold_bars for item in episodes)),
    "hold_max": Question("bars", episodes=lambda episodes: max(_holds(episodes))),
    "hold_min": Question("bars", episodes=lambda episodes: min(_holds(episodes))),
    "days_p50": Question("days", episodes=_of_days(median)[0], further=_of_days(median)[1:]),
    "days_p90": Question("days"),
    "days_mean": Question("days", episodes=_of_days(fmean)[0], further=_of_days(fmean)[1:]),
    "days_max": Question("days", episodes=_of_days(max)[0], further=_of_days(max)[1:]),
    "days_min": Question("days", episodes=_of_days(min)[0], further=_of_days(min)[1:]),
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
    "gross_pnl": Question("money", episodes=lambda episodes: sum(item.pnl + item.fees for item in episodes)),
    "mean_pnl": Question("money", episodes=lambda episodes: fmean(item.pnl for item in episodes)),
    "mean_fees": Question("money", episodes=lambda episodes: fmean(item.fees for item in episodes)),
    "best_pnl": Question("money", episodes=lambda episodes: max(item.pnl for item in episodes)),
    "worst_pnl": Question("money", episodes=lambda episodes: min(item.pnl for item in episodes)),
    "profit_factor": Question(
        "score",
        episodes=lambda episodes: _factor_of(_r(episodes)),
        further=(lambda episodes: _factor_of([episode.pnl for episode in episodes]),),
    ),
    "mean_mfe": Question("r", episodes=lambda episodes: fmean(item.mfe_r for item in episodes)),
    "worst_mae": Question("r", episodes=lambda episodes: min(item.mae_r for item in episodes)),
    "best_mfe": Question("r", episodes=lambda episodes: max(item.mfe_r for item in episodes)),
    "mean_mae": Question("r", episodes=lambda episodes: fmean(item.mae_r for item in episodes)),
    # Answered by the run, its report or a version as a whole: see `RunFacts`.
    "failures": Question("count"),
    "playbooks": Question("count"),
    "symbols": Question("count"),
    "clusters": Question("count"),
    "regimes": Question("count"),
    "recommendations": Question("count"),
    "reports": Question("count"),
    "parameter": Question("score"),
    "version": Question("count"),
    "price": Question("price"),
    # Answered by the snapshots and the trials on paper: see `Observed`.
    "equity": Question("money"),
    "cash": Question("money"),
    "drawdown": Question("share"),
    "max_drawdown": Question("share"),
    "exposure": Question("share"),
    "account_return": Question("share"),
    "feature": Question("price"),
    # Answered by the document of a run that is over: see `AT_THE_END`.
    **dict.fromkeys(("sharpe", "sortino", "calmar", "payoff"), Question("score")),
    **dict.fromkeys(("buy_and_hold", "cagr", "volatility"), Question("share")),
    "start_cash": Question("money"),
    # Answered by its settings.
    **dict.fromkeys(("fee_bps", "slippage_bps"), Question("bps")),
    "risk_fraction": Question("share"),
    **dict.fromkeys(
        (
            "drawdown_days",
            "open_positions",
            "proposals",
            "sent_back",
            "let_pass",
            "stand_downs",
            "evaluations",
        ),
        Question("count"),
    ),
    "e_needed": Question("score"),
    "expected_hold_p50": Question("bars"),
    "expected_hold_p90": Question("bars"),
    "expected_mae_p80": Question("r"),
    "expected_mfe_p50": Question("r"),
}
