"""The few shapes of the pictures on pages without a script; colour comes from the page's style, by class.

Reports are pages by the dozen, and an ablation is mailed around: a library that draws would be twenty times
as large as either. The page of a run has it, and draws with it all but the two pictures of its reports.

A picture that stands alone gives its shapes their look as attributes instead.

Where a value lies on an axis, and which values deserve a tick.

The tree is built and written by the standard library, which escapes every text and attribute; characters that
cannot be seen are written out first. No picture is put together from strings.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from xml.etree.ElementTree import Element, tostring

from services.model_calls.quoting import visible

GRADES = ("insufficient_sample", "count_only", "suggestive", "significant")
GRADE_SHAPES = dict(zip(GRADES, ("ring", "circle", "diamond", "square"), strict=True))
SERIES_SHAPES = ("circle", "square", "diamond", "triangle", "ring", "cross")
SERIES_COLORS = 6
Child = Element | str | None
Look = str | float
STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
NO_WIDTH = 1e-6  # of the values: it cannot be seen, and ticks could not be told apart


@dataclass(frozen=True)
class Scale:
    """Maps values from `low` to `high` onto `start` to `end`; logarithmic when `log`; clamps at both ends."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """The place of a value."""
        return self.start + self._share(value) * (self.end - self.start)

    def inside(self, value: float) -> bool:
        """Whether a value lies on the axis."""
        return self.low <= value <= self.high

    def ticks(self, wanted: int = 6) -> tuple[float, ...]:
        """Round values inside, about as many as wanted; powers of ten on a logarithmic axis."""
        if self.log:
            powers = range(ceil(log10(self.low) - 1e-9), floor(log10(self.high) + 1e-9) + 1)
            return tuple(10.0**power for power in powers)
        step = _step((self.high - self.low) / wanted)
        first, last = ceil(self.low / step - 1e-9), floor(self.high / step + 1e-9)
        ticks = (round(number * step, 10) + 0.0 for number in range(first, last + 1))
        return tuple(tick for tick in ticks if self.low <= tick <= self.high)

    def _share(self, value: float) -> float:
        held = min(max(value, self.low), self.high)
        if self.log:
            return (log10(held) - log10(self.low)) / (log10(self.high) - log10(self.low))
        return (held - self.low) / (self.high - self.low)


def spanning(values: Iterable[float], start: float, end: float, *, room: float = 0.06) -> Scale:
    """A linear scale over all values with a little room at both ends; never of (next to) no width."""
    known = [*values]
    low, high = min(known, default=0.0), max(known, default=1.0)
    width = high - low
    if width < NO_WIDTH * max(1.0, abs(low), abs(high)):
        width = 1.0
    return Scale(low - room * width, high + room * width, start, end)


def _step(least: float) -> float:
    power = 10.0 ** floor(log10(least))
    return next(step * power for step in STEPS if step * power >= least - 1e-12)


def tag(name: str, /, *children: Child, **attributes: str | float | None) -> Element:
    """One element; children in order, None left out.

    Attributes are written with `-` for `_`, without one at the end (`class_`, `aria_label`); None leaves one
    out, and numbers are written with two digits at most.
    """
    element = Element(name)
    for key, value in attributes.items():
        if value is not None:
            element.set(key.rstrip("_").replace("_", "-"), _attribute(value))
    return fill(element, children)


def fill(element: Element, children: Iterable[Child]) -> Element:
    """Append children to an element and give it back."""
    for child in children:
        if isinstance(child, str):
            _append_text(element, visible(child, lines=True))
        elif child is not None:
            element.append(child)
    return element


def write(element: Element) -> str:
    """The element as HTML."""
    return tostring(element, encoding="unicode", method="html")


def _attribute(value: str | float) -> str:
    if isinstance(value, str):
        return visible(value)
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def _append_text(element: Element, text: str) -> None:
    if len(element):
        element[-1].tail = (element[-1].tail or "") + text
    else:
        element.text = (element.text or "") + text


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


def ticks_below(
    scale: Scale, top: float, foot: float, below: float, words: Callable[[float], str], wanted: int = 6
) -> list[Child]:
    """Lines from `top` to `foot` at the ticks of an axis that runs across, each with its words below it."""
    shapes: list[Child] = []
    for tick in scale.ticks(wanted):
        shapes += [
            line(scale(tick), top, scale(tick), foot, "grid"),
            text(scale(tick), foot + below, words(tick), "tick", "middle"),
        ]
    return shapes


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
