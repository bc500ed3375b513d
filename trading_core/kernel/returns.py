"""What an account returned, by stretches of bars, from what `advance` wrote at every close."""

from typing import Any

from trading_core.compiled import entry_point


@entry_point
def sum_returns(equity: Any, gross: Any, inverse: Any, edges: Any, periods: Any, sums: Any) -> None:
    """Write sums of returns from bar to bar on a price at the bar before, in the order of the bars.

    Args:
        equity: float64 (T,).
        gross: float64 (T,), exposure.
        inverse: float64 (T,), one over the price.
        edges: int64 (P + 1,), ascending: the bar from which on each period counts, and the last bar.
        periods: float64 (P,), written: the sum of each period, 0 where it has no bar.
        sums: float64 (2,), written: of squared returns, and of exposure over the price.
    """
    squares = 0.0
    for k in range(periods.shape[0]):
        total = 0.0
        for t in range(edges[k], edges[k + 1]):
            change = (equity[t + 1] - equity[t]) * inverse[t]
            total += change
            squares += change * change
        periods[k] = total
    held = 0.0
    for t in range(gross.shape[0]):
        held += gross[t] * inverse[t]
    sums[0] = squares
    sums[1] = held
