"""A rule by itself: every true entry traded with a bracket, without playbooks, reflections or an account."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from thinktwice.boundary import trims_errors
from thinktwice.inputs import bars_of, settings_of, symbols_of
from trading_core.research import simulation
from trading_core.research.simulation import SimulationResult

if TYPE_CHECKING:
    import pandas as pd


@trims_errors
def simulate(
    bars: "pd.DataFrame | str | Path | None" = None,
    entry: str = "crosses_above(sma_10, sma_30)",
    *,
    direction: Literal["long", "short"] = "long",
    stop_pct: float = 0.02,
    target_pct: float = 0.04,
    time_stop_bars: int = 50,
    fee_bps: float = 5.0,
    slippage_bps: float = 0.0,
    symbols: Sequence[str] | None = None,
    tz: str | None = None,
    start: str | None = None,
    end: str | None = None,
    **terms: Any,
) -> SimulationResult:
    """What a rule would have traded: `trades` and `equity` as pandas objects, and orders that were `refused`.

    Args:
        bars: as `backtest` takes them.
        entry: boolean rule, read at each close; acts at the next open.
        direction: long or short.
        stop_pct: distance of the stop, as a share of the fill.
        target_pct: distance of the target, likewise.
        time_stop_bars: bars until an exit at the open.
        fee_bps: a side, of notional.
        slippage_bps: a side, against the order.
        symbols: those that are traded, at least one; None: all. Of bars that name none, their name.
        tz: zone of times that carry none.
        start: first label kept, UTC.
        end: last label kept, UTC.
        terms: other terms of `trading_core.research.simulation.simulate`, such as `both_hit`.

    Raises:
        DataError: the bars cannot be used.
        RuleError: the rule cannot be read; it names the column and the nearest name.
        ConfigError: a value that cannot be.
        TypeError: a term that is none.
    """
    given: dict[str, Any] = {"runtime__tz": tz, "runtime__start": start, "runtime__end": end}
    given |= {"data__symbols": symbols_of(symbols)}
    told = settings_of(None, given, {})
    return simulation.simulate(
        bars_of(bars, told), entry, direction=direction, stop_pct=stop_pct, target_pct=target_pct,
        time_stop_bars=time_stop_bars, fee_bps=fee_bps, slippage_bps=slippage_bps, **terms,
    )  # fmt: skip
