"""A small SVG writer: a canvas with shapes, and panels that map time and value. Called by `draw_run`."""

from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

Range = tuple[float, float]
FONT = "system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif"


class Canvas:
    """Shapes in drawing order on a white card, so that it reads on light and dark pages alike."""

    def __init__(self, width: float, height: float) -> None:
        self._size = (width, height)
        self._shapes: list[str] = []

    def add(self, shape: str) -> None:
        """Append a finished element."""
        self._shapes.append(shape)

    def text(
        self,
        x: float,
        y: float,
        words: str,
        *,
        size: int,
        color: str = "#222",
        anchor: str = "start",
        weight: str = "normal",
    ) -> None:
        """One line of text with its baseline at y."""
        self.add(
            f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{color}" text-anchor="{anchor}" '
            f'font-weight="{weight}">{escape(words)}</text>'
        )

    def svg(self, description: str) -> str:
        """The whole document; `description` is read aloud where the picture cannot be seen."""
        width, height = self._size
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img" '
            f'font-family="{FONT}">\n<title>{escape(description)}</title>\n'
            f'<rect width="{width:g}" height="{height:g}" rx="8" fill="#ffffff"/>'
        )
        return "\n".join([head, *self._shapes, "</svg>\n"])


@dataclass(frozen=True)
class Panel:
    """A rectangle of the canvas with a time axis and a value axis."""

    canvas: Canvas
    across: Range
    down: Range
    times: Range
    values: Range

    def x(self, time: float) -> float:
        """Where a time lies."""
        share = (time - self.times[0]) / (self.times[1] - self.times[0])
        return self.across[0] + share * (self.across[1] - self.across[0])

    def y(self, value: float) -> float:
        """Where a value lies."""
        share = (value - self.values[0]) / (self.values[1] - self.values[0])
        return self.down[1] - share * (self.down[1] - self.down[0])

    def grid(self, value: float, label: str) -> None:
        """A horizontal line with its label at the left."""
        y = self.y(value)
        left, right = self.across
        self.canvas.add(f'<line x1="{left:g}" x2="{right:g}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e6e8eb"/>')
        self.canvas.text(self.across[0] - 8, y + 4, label, size=11, color="#555", anchor="end")

    def caption(self, words: str) -> None:
        """What the panel shows, above its left corner."""
        self.canvas.text(self.across[0], self.down[0] - 6, words, size=11, color="#555")

    def line(self, points: Sequence[tuple[float, float]], color: str, width: float) -> None:
        """A polyline through (time, value) points."""
        path = " ".join(f"{self.x(time):.1f},{self.y(value):.1f}" for time, value in points)
        self.canvas.add(
            f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="{width:g}" '
            'stroke-linejoin="round"/>'
        )

    def bar(self, left: float, right: float, value: float, color: str) -> None:
        """A bar from the bottom of the panel to a value."""
        x, y = self.x(left), self.y(value)
        self.canvas.add(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(0.5, self.x(right) - x - 0.6):.1f}" '
            f'height="{self.down[1] - y:.1f}" fill="{color}"/>'
        )

    def mark(self, time: float, color: str) -> None:
        """A dashed line over the height of the panel with a triangle at its foot."""
        x, (top, foot) = self.x(time), self.down
        self.canvas.add(
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top:g}" y2="{foot:g}" stroke="{color}" '
            f'stroke-dasharray="2 4" stroke-opacity="0.7"/>'
            f'<path d="M{x - 4:.1f},{foot + 8:g} h8 l-4,-8 z" fill="{color}"/>'
        )

    def legend(self, entries: Sequence[tuple[str, str]]) -> None:
        """Names with their colours, along the top edge from the right."""
        x = self.across[1]
        for name, color in reversed(entries):
            self.canvas.text(x, self.down[0] - 6, name, size=12, anchor="end")
            x -= 6.6 * len(name) + 6
            y = self.down[0] - 10
            self.canvas.add(
                f'<line x1="{x - 18:.1f}" x2="{x:.1f}" y1="{y:g}" y2="{y:g}" '
                f'stroke="{color}" stroke-width="3"/>'
            )
            x -= 34
