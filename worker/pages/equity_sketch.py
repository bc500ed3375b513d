"""The course of a run's equity as a small picture for a notebook, in the colour of the text beside it."""

import numpy as np
import numpy.typing as npt

from worker.pages.run_picture import drawn_rows
from worker.pages.shapes import line, path, picture, spanning, write

WIDTH, HEIGHT, MARGIN = 420.0, 90.0, 4.0
MOST_POINTS = 200  # the lowest and the highest of each stretch: no fall is thinned away


def equity_sketch(equity: npt.NDArray[np.float64], cash: float) -> str:
    """Equity, (T,) at the bar closes in quote currency, against the cash that it began with, as SVG."""
    across = spanning([0.0, float(max(1, len(equity) - 1))], MARGIN, WIDTH - MARGIN, room=0.0)
    up = spanning([cash, float(equity.min()), float(equity.max())], HEIGHT - MARGIN, MARGIN)
    rows = drawn_rows([equity], MOST_POINTS // 2)
    points = [(across(float(row)), up(float(equity[row]))) for row in rows]
    text = f"from {cash:,.0f} to {equity[-1]:,.0f}, lowest {equity.min():,.0f}, highest {equity.max():,.0f}"
    return write(
        picture(
            WIDTH,
            HEIGHT,
            "Equity",
            text,
            line(MARGIN, up(cash), WIDTH - MARGIN, up(cash), stroke="currentColor", opacity=0.3),
            path(points, stroke="currentColor", fill="none"),
            style=f"display:block;max-width:{WIDTH:g}px",
        )
    )
