"""Levels on the grid of the market, as the engine will trade them.

What is reflected on, judged and frozen has to be the level that is put in force, so a level is rounded before
any of them sees it.
"""

from math import isfinite


def on_grid(level: float, tick: float) -> float | None:
    """The nearest level on the grid; the level itself without one (0), None if it is no number."""
    if tick != 0.0:
        from trading_core.kernel.execution import on_tick  # compiled: loaded only where there is a grid

        level = float(on_tick(level, tick))
    return level if isfinite(level) else None
