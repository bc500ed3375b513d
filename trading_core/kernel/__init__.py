"""The compiled kernel: what one bar means for every symbol and for the portfolio.

`loop.advance` is the one door; `records` are the layouts it works on, `fresh` makes them.
"""

from trading_core.kernel.loop import BOUNDARY, BUFFER_FULL, END, FAULT, advance

__all__ = ["BOUNDARY", "BUFFER_FULL", "END", "FAULT", "advance"]
