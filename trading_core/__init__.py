"""The deterministic engine: arrays in, arrays and events out; no I/O, clock, randomness, database or model.

Importing the package first points numba's disk cache at a folder named by the hash of these sources,
because that cache does not notice an edited helper of a cached function.
"""

from typing import TYPE_CHECKING, Any

from trading_core.compiled_cache import use_cache_of_these_sources

use_cache_of_these_sources()

if TYPE_CHECKING:
    from trading_core.bars import BarSeries
    from trading_core.research.simulation import SimulationResult, simulate

__all__ = ["BarSeries", "SimulationResult", "simulate"]


def __getattr__(name: str) -> Any:
    """Load the public entries when they are first asked for: importing the package must stay cheap."""
    if name == "BarSeries":
        from trading_core.bars import BarSeries

        return BarSeries
    if name in ("SimulationResult", "simulate"):
        from trading_core.research import simulation

        return getattr(simulation, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
