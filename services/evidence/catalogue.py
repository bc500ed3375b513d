"""The closed catalogue: each figure that the trades of a subject have, after costs and unrounded.

A hold is in bars, R, MAE and MFE in multiples of the risk at the entry, profit and fees in the account's
currency, a share 0 to 1.
"""

from collections.abc import Callable, Sequence
from statistics import fmean, median

from schemas.episode import Episode

# The figure of at least one trade; None where they have none.
OverTrades = Callable[[Sequence[Episode]], float | None]


def _r(episodes: Sequence[Episode]) -> list[float]:
    return [episode.r for episode in episodes]


def _share(chosen: Callable[[Episode], bool]) -> OverTrades:
    return lambda episodes: fmean(chosen(episode) for episode in episodes)


def _number(chosen: Callable[[Episode], bool]) -> OverTrades:
    return lambda episodes: float(sum(chosen(episode) for episode in episodes))


def won(episode: Episode) -> bool:
    """Whether the trade earned anything, after costs."""
    return episode.r > 0


def is_loss(episode: Episode) -> bool:
    """Whether the trade lost anything, after costs."""
    return episode.r < 0


def _holds(episodes: Sequence[Episode]) -> list[float]:
    return [float(episode.hold_bars) for episode in episodes]


def _factor_of(results: Sequence[float]) -> float | None:
    """What the winners brought over what the losers took; None where nothing was lost."""
    gained, given = sum(r for r in results if r > 0), -sum(r for r in results if r < 0)
    return gained / given if given else None


CATALOGUE: dict[str, OverTrades] = {
    "trades": lambda episodes: float(len(episodes)),
    "winners": _number(won),
    "losers": _number(is_loss),
    "longs": _number(lambda episode: episode.direction == "long"),
    "shorts": _number(lambda episode: episode.direction == "short"),
    "win_rate": _share(won),
    "loss_rate": _share(is_loss),
    "mean_r": lambda episodes: round(fmean(_r(episodes)), 9),
    "median_r": lambda episodes: round(median(_r(episodes)), 9),
    "total_r": lambda episodes: round(sum(_r(episodes)), 9),
    "best_r": lambda episodes: max(_r(episodes)),
    "worst_r": lambda episodes: min(_r(episodes)),
    "profit_factor": lambda episodes: _factor_of(_r(episodes)),
    "hold_mean": lambda episodes: fmean(_holds(episodes)),
    "hold_p50": lambda episodes: median(_holds(episodes)),
    "hold_max": lambda episodes: max(_holds(episodes)),
    "hold_min": lambda episodes: min(_holds(episodes)),
    "mean_mae": lambda episodes: fmean(item.mae_r for item in episodes),
    "mean_mfe": lambda episodes: fmean(item.mfe_r for item in episodes),
    "worst_mae": lambda episodes: min(item.mae_r for item in episodes),
    "best_mfe": lambda episodes: max(item.mfe_r for item in episodes),
    "mfe_p50": lambda episodes: median(item.mfe_r for item in episodes),
    "pnl": lambda episodes: sum(item.pnl for item in episodes),
    "gross_pnl": lambda episodes: sum(item.pnl + item.fees for item in episodes),
    "mean_pnl": lambda episodes: fmean(item.pnl for item in episodes),
    "best_pnl": lambda episodes: max(item.pnl for item in episodes),
    "worst_pnl": lambda episodes: min(item.pnl for item in episodes),
    "fees": lambda episodes: sum(item.fees for item in episodes),
    "mean_fees": lambda episodes: fmean(item.fees for item in episodes),
}
