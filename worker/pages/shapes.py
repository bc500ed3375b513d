"""The few shapes that the pictures are made of. Colour comes from the page's style, by class.

A picture that stands alone gives its shapes their look as attributes instead.
"""

from collections.abc import Sequence
from xml.etree.ElementTree import Element

from worker.pages.markup import Child, tag

GRADES = ("insufficient_sample", "count_only", "suggestive", "significant")
GRADE_SHAPES = dict(zip(GRADES, ("ring", "circle", "diamond", "square"), strict=True))
SERIES_SHAPES = ("circle", "square", "diamond", "triangle", "ring", "cross")
SERIES_COLORS = 6
Look = str | float


def picture(
    width: float, height: float, title: str, description: str, *shapes: Child, **look: Look
) -> Element:
    """A picture with its text alternative."""
    return tag(
        "svg",
        tag("title", title),
        tag("desc", description),
        *shapes,
        viewBox=f"0 0 {width:g} {height:g}",
        role="img",
        aria_label=f"{title}. {description}",
        **look,
    )


def text(
    x: float, y: float, words: str, class_: str | None = "label", anchor: str | None = None, **look: Look
) -> Element:
    """One line of text with its baseline at y."""
    return tag("text", words, x=x, y=y, class_=class_, text_anchor=anchor, **look)


def figure(x: float, y: float, value: float, words: str, anchor: str = "end") -> Element:
    """A number of the report as a text; `data-value` holds it unrounded."""
    return tag("text", words, x=x, y=y, class_="figure", text_anchor=anchor, data_value=repr(value))


def line(x1: float, y1: float, x2: float, y2: float, class_: str | None = None, **look: Look) -> Element:
    """A straight line."""
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_, **look)


def path(points: Sequence[tuple[float, float]], class_: str | None = None, **look: Look) -> Element:
    """A line through points."""
    joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return tag("polyline", points=joined, class_=class_, **look)


def marker(shape: str, x: float, y: float, class_: str, size: float = 4.5) -> Element:
    """A mark whose shape tells as much as its colour."""
    if shape in ("circle", "ring"):
        return tag("circle", cx=x, cy=y, r=size, class_=f"{class_} {shape}")
    outline = _OUTLINES[shape]
    points = " ".join(f"{x + dx * size:.1f},{y + dy * size:.1f}" for dx, dy in outline)
    return tag("polygon", points=points, class_=f"{class_} {shape}")


def apart(places: Sequence[float], gap: float) -> list[float]:
    """The same places in the same order, moved down where two are nearer than `gap`."""
    moved = list(places)
    order = sorted(range(len(places)), key=lambda k: (places[k], k))
    for first, second in zip(order, order[1:], strict=False):
        moved[second] = max(moved[second], moved[first] + gap)
    return moved


_OUTLINES = {
    "square": ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)),
    "diamond": ((0.0, -1.25), (1.25, 0.0), (0.0, 1.25), (-1.25, 0.0)),
    "triangle": ((0.0, -1.15), (1.1, 0.85), (-1.1, 0.85)),
    "cross": (
        (-0.35, -1.1), (0.35, -1.1), (0.35, -0.35), (1.1, -0.35), (1.1, 0.35), (0.35, 0.35),
        (0.35, 1.1), (-0.35, 1.1), (-0.35, 0.35), (-1.1, 0.35), (-1.1, -0.35), (-0.35, -0.35),
    ),
}  # fmt: skip
