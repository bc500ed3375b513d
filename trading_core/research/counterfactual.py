"""What a bracket would have done.

One entry that never happened, walked by the same kernel on the bars that followed.
"""

import numpy as np

from schemas.settings.execution import ExecutionSettings
from trading_core.bars import BarSeries
from trading_core.kernel.fresh import fresh_state, parameter_record
from trading_core.kernel.loop import advance
from trading_core.kernel.records import EVENT, NO_EDGES, TRADE


def bracket_outcome(
    bars: BarSeries,
    s: int,
    row: int,
    until: int,
    *,
    direction: int,
    stop: float,
    target: float,
    horizon: int,
    execution: ExecutionSettings,
) -> tuple[float, int] | None:
    """R after costs of a market entry signalled at the close of `row`, and the row in which it was resolved.

    Args:
        bars: bars of the run.
        s: symbol column.
        row: signal row.
        until: first row that may not be read.
        direction: +1 long, -1 short.
        stop: absolute level.
        target: absolute level.
        horizon: time stop in own bars.
        execution: fill rules and costs.

    Returns:
        (r, exit_row), or None while unresolved or when the order would have been refused.
    """
    rows = row + np.flatnonzero(bars.present[row:until, s])[: horizon + 2]
    if rows.size < 2 or rows[0] != row:
        return None
    prices = [
        np.ascontiguousarray(array[rows, s : s + 1]) for array in (bars.open, bars.high, bars.low, bars.close)
    ]
    size = rows.size
    truths = np.zeros((1, size), dtype=np.int8)
    truths[0, 0] = 1
    numbers = np.empty((2, size))
    numbers[0], numbers[1] = stop, target
    state, portfolio = fresh_state(1, 1e9)
    for name, value in {
        "policy": 0, "policy_direction": direction, "policy_horizon": horizon, "policy_immediate": 1,
        "policy_never_ends": 1, "k_setup": 0, "k_stop": 0, "k_target": 1,
    }.items():  # fmt: skip
        state[name] = value
    trades, n_trades, count = np.zeros(8, dtype=TRADE), np.zeros(1, np.int64), np.zeros(1, np.int64)
    o, h, low, c = prices
    parameters = parameter_record(execution, None, heartbeat=0, emit_events=False, fixed_quantity=1.0)
    advance(
        0, size, o, h, low, c, np.ones((size, 1), dtype=np.bool_), np.zeros(size, np.int64),
        np.zeros((size, 1), np.uint8), truths, numbers, state, portfolio, parameters,
        np.zeros(1, dtype=EVENT), count, trades, n_trades, np.empty(size), np.empty(size), NO_EDGES,
    )  # fmt: skip
    if int(n_trades[0]) == 0:
        return None
    return float(trades[0]["r"]), int(rows[int(trades[0]["exit_t"])])
