"""A sweep as an HTML page: what the search is worth, the heat map, every set; nothing is computed here."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import Element

from services.model_calls.quoting import count_noun
from worker.pages.figures import DASH, number, percent, r_multiple
from worker.pages.rendering import render
from worker.pages.shapes import Child, picture, tag, text, write

if TYPE_CHECKING:
    import pandas as pd

LEFT, TOP, CELL, HIGH, MOST_CELLS = 130.0, 46.0, 58.0, 26.0, 60
MOST_ROWS = 2_000
FIGURES: dict[str, Callable[[Any], str]] = {
    "trades": lambda value: f"{value:,}", "total_r": r_multiple, "return": percent, "sharpe": number,
}  # fmt: skip


def sweep_html(document: dict[str, Any], lines: list[str], heat: "pd.DataFrame | None") -> str:
    """The page; the same document gives the same bytes.

    Args:
        document: of a sweep.
        lines: what the search is worth, the verdict first.
        heat: mean Sharpe ratios by two values; None: nothing to draw.
    """
    sets = document["sets"]
    names = [name for name in sets[0] if name not in FIGURES and name != "problem"]
    head = [*names, *(f"{name} #" for name in FIGURES), *(["reason"] if "problem" in sets[0] else [])]
    return render(
        "sweep.html",
        "Parameter sets",
        document=document,
        bars=count_noun(document["data"]["bars"], "bar"),
        lines=lines,
        plot=write(_heat(heat)) if heat is not None and max(heat.shape) <= MOST_CELLS else "",
        head=", ".join(head),
        parameters=len(names),
        rows=[_row(row, names) for row in sets[:MOST_ROWS]],
        left_out=max(0, len(sets) - MOST_ROWS),
    )


def _row(row: dict[str, Any], names: list[str]) -> list[str]:
    figures = [DASH if row[name] is None else show(row[name]) for name, show in FIGURES.items()]
    return [
        *(str(row[name]) for name in names),
        *figures,
        *([row["problem"] or ""] if "problem" in row else []),
    ]


def _heat(heat: "pd.DataFrame") -> Element:
    """Each cell's figure in a colour from the lowest to the highest; blue above zero, orange below."""
    values = heat.to_numpy()
    most = (
        max(float(abs(value)) for value in values.flat if value == value) if heat.notna().any().any() else 1.0
    )
    shapes: list[Child] = [
        text(10, 16, f"Sharpe ratio: {heat.index.name} down, {heat.columns.name} across", "head")
    ]
    for j, name in enumerate(heat.columns):
        shapes.append(text(LEFT + CELL * (j + 0.5), TOP - 8, str(name), "tick", "middle"))
    for i, name in enumerate(heat.index):
        y = TOP + HIGH * i
        shapes.append(text(LEFT - 8, y + 17, str(name), "tick", "end"))
        for j in range(len(heat.columns)):
            value = float(values[i, j])
            if value != value:
                continue
            share, colour = round(0.7 * abs(value) / most, 3), "#0072b2" if value > 0 else "#d55e00"
            x = LEFT + CELL * j
            shapes.append(tag("rect", x=x, y=y, width=CELL, height=HIGH, fill=colour, fill_opacity=share))
            shapes.append(text(LEFT + CELL * (j + 0.5), y + 17, f"{value:+.2f}", "tick", "middle"))
    width, foot = LEFT + CELL * len(heat.columns) + 10, TOP + HIGH * len(heat.index) + 10
    return picture(width, foot, "Sharpe ratio of every pair of values", "the table holds every set", *shapes)
