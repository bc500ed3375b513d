"""How the reports up to this one have seen each playbook: the level of its e-detector, and its mean R.

The detector's limit is a line; only a level above it is an alarm, and an alarm is monitoring. Where reports
carry a distance between older and newer regimes, it is the third panel.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree.ElementTree import Element

from worker.pages.figures import shown_time
from worker.pages.shapes import (
    SERIES_COLORS,
    SERIES_SHAPES,
    Child,
    Scale,
    apart,
    line,
    marker,
    path,
    picture,
    spanning,
    tag,
    text,
)

WIDTH, PANEL, GAP, TOP, BOTTOM = 940.0, 170.0, 62.0, 30.0, 28.0
LEFT, RIGHT = 64.0, 690.0
FLOOR = 0.1
DATES = 6
MARKED = 40  # a line of more points is drawn without a mark on each
DAY_NS = 86_400_000_000_000
Report = dict[str, Any]
Series = Mapping[str, Sequence[tuple[int, float]]]  # lines by name: time in ns and value, oldest first


def drift_plot(reports: Sequence[Report]) -> Element:
    """Pictures of reports in order of time, the one that the page is about last."""
    times = [report["known_at"] for report in reports]
    alone = DAY_NS if times[0] == times[-1] else 0
    across = Scale(times[0] - alone, times[-1] + alone, LEFT, RIGHT)
    panels = [
        ("e-detector of each playbook; a level above the limit is an alarm", series(reports, "level"), True),
        ("winsorised mean R of each playbook in its epoch", series(reports, "mean_r"), False),
    ]
    distances = regime_distances(reports)
    if distances:
        panels.append(("energy distance between older and newer regimes", distances, False))
    shapes: list[Child] = []
    top = TOP
    for caption, lines, is_level in panels:
        values = [value for points in lines.values() for _, value in points]
        down = spanning([0.0, *values], top + PANEL, top, room=0.1)
        if is_level:
            down = Scale(FLOOR, 3 * max([limit_of(reports) or 1.0, *values]), top + PANEL, top, log=True)
        shapes.append(_panel(caption, lines, across, down, limit_of(reports) if is_level else 0.0))
        shapes += _dates(times, across, top + PANEL)
        top += PANEL + GAP
    return picture(
        WIDTH,
        top - GAP + BOTTOM,
        "Drift over the reports so far",
        f"{len(reports)} reports; the table of drift holds the numbers of the last one",
        *shapes,
    )


def series(reports: Sequence[Report], field: str) -> Series:
    """One line per playbook, in name order, of a field of `decay`."""
    found: dict[str, list[tuple[int, float]]] = {}
    for report in reports:
        for row in report.get("decay", ()):
            if row[field] is not None:
                found.setdefault(row["playbook_id"], []).append((report["known_at"], row[field]))
    return dict(sorted(found.items()))


def regime_distances(reports: Sequence[Report]) -> Series:
    """The energy distance of the reports that carry one, as one line; nothing when none does."""
    shifts = [(report["known_at"], report.get("regime_shift") or {}) for report in reports]
    known = [
        (at, shift["energy_distance"]) for at, shift in shifts if shift.get("energy_distance") is not None
    ]
    return {"regimes, all symbols": known} if known else {}


def limit_of(reports: Sequence[Report]) -> float | None:
    """The level that raises an alarm; None when no report carries one."""
    limits = [row["limit"] for report in reports for row in report.get("decay", ())]
    return limits[-1] if limits else None


def _panel(caption: str, lines: Series, across: Scale, down: Scale, limit: float | None) -> Element:
    shapes: list[Child] = [text(LEFT, down.end - 10, caption, "head")]
    for tick in down.ticks(6):
        shapes += [
            line(LEFT, down(tick), RIGHT, down(tick), "grid"),
            text(LEFT - 8, down(tick) + 4, f"{tick:g}", "tick", "end"),
        ]
    if limit is not None:
        shapes.append(line(LEFT, down(limit), RIGHT, down(limit), "reference"))
        if down.log:
            shapes.append(text(LEFT + 6, down(limit) + 14, f"limit {limit:g}", "tick"))
    return tag("g", *shapes, *_lines(lines, across, down))


def _lines(lines: Series, across: Scale, down: Scale) -> list[Child]:
    ends = apart([down(points[-1][1]) for points in lines.values()], 15.0)
    shapes: list[Child] = []
    for position, ((name, known), end) in enumerate(zip(lines.items(), ends, strict=True)):
        color, shape = f"s{position % SERIES_COLORS}", SERIES_SHAPES[position % len(SERIES_SHAPES)]
        points = [(across(at), down(value)) for at, value in known]
        shapes.append(path(points, f"series {color}"))
        marked = points if len(points) <= MARKED else points[-1:]
        shapes += [marker(shape, x, y, f"mark {color}", 3.5) for x, y in marked]
        x, y = points[-1]
        shapes += [
            line(x + 6, y, RIGHT + 18, end, f"leader {color}"),
            marker(shape, RIGHT + 26, end, f"mark {color}", 3.5),
            text(RIGHT + 36, end + 4, name),
        ]
    return shapes


def _dates(times: Sequence[int], across: Scale, foot: float) -> list[Child]:
    """Dates of some reports under a panel, the last one always among them."""
    chosen = sorted({round(k * (len(times) - 1) / (DATES - 1)) for k in range(DATES)})
    shapes: list[Child] = []
    for position in chosen:
        x = across(times[position])
        shapes += [
            line(x, foot, x, foot + 4, "grid"),
            text(x, foot + 17, shown_time(times[position]).partition(" ")[0], "tick", "middle"),
        ]
    return shapes
