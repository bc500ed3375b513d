"""A share of some trials with its exact interval."""


def share_interval(hits: int, trials: int, confidence: float = 0.95) -> tuple[float, float] | None:
    """Clopper and Pearson's interval of a share, which covers at least as often as it says; None of no trial.

    Trials count as independent; source: Clopper and Pearson 1934.
    """
    if not trials:
        return None
    from scipy.special import betaincinv  # loaded where it is used, see `Track.fixed_time`

    tail = (1.0 - confidence) / 2
    low = 0.0 if not hits else float(betaincinv(hits, trials - hits + 1, tail))
    high = 1.0 if hits == trials else float(betaincinv(hits + 1, trials - hits, 1.0 - tail))
    return low, high
