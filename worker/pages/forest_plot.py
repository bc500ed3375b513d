"""Every cluster on one line: its mean, its confidence sequence, and how much that shows.

Grade is told by colour and by shape, the reference by a line, and an interval that leaves the picture by an
arrow. Whatever is drawn stands in the table beside it.
"""

from collections.abc import Sequence
from typing import Any
from xml.etree.ElementTree import Element

from worker.pages.figures import r_multiple
from worker.pages.shapes import (
    GRADE_SHAPES,
    GRADES,
    Child,
    Scale,
    figure,
    line,
    marker,
    picture,
    spanning,
    tag,
    text,
    ticks_below,
)

WIDTH, ROW, TOP, BOTTOM = 940.0, 21.0, 64.0, 34.0
LEFT, RIGHT = 250.0, 640.0
N_AT, INTERVAL_AT, E_AT = 690.0, 862.0, 930.0
OPEN = 1e6  # R, beyond any picture: an open side is drawn as an arrow
Finding = dict[str, Any]


def forest_plot(findings: Sequence[Finding]) -> Element:
    """One row per cluster of `shown_clusters`, in its order."""
    height = TOP + ROW * len(findings) + BOTTOM
    foot = height - BOTTOM + 4
    scale = _scale(findings)
    shapes: list[Child] = [*_legend({cluster["grade"] for cluster in findings}), *_axis(scale, TOP - 8, foot)]
    for position, finding in enumerate(findings):
        shapes.append(_row(finding, TOP + ROW * (position + 0.5), scale))
    return picture(
        WIDTH,
        height,
        "Mean R of every cluster with its confidence sequence",
        f"{len(findings)} rows; the table of clusters holds the same numbers",
        *shapes,
    )


def cluster_name(finding: Finding) -> str:
    """`playbook`, `playbook in regime`, or that with its timeframe."""
    where = f" in {finding['regime']}" if finding["regime"] else ""
    frame = f" on {finding['timeframe']}" if finding["timeframe"] else ""
    return f"{finding['playbook_id']}{where}{frame}"


def shown_clusters(findings: Sequence[Finding]) -> list[Finding]:
    """Findings by playbook, regime and timeframe, without timeframes that only repeat their cell."""
    frames: dict[tuple[str, str | None], int] = {}
    for cluster in findings:
        key = cluster["playbook_id"], cluster["regime"]
        frames[key] = frames.get(key, 0) + (cluster["timeframe"] is not None)
    kept = [
        cluster
        for cluster in findings
        if cluster["timeframe"] is None or frames[cluster["playbook_id"], cluster["regime"]] > 1
    ]
    return sorted(
        kept,
        key=lambda cluster: (cluster["playbook_id"], cluster["regime"] or "", cluster["timeframe"] or ""),
    )


def _scale(findings: Sequence[Finding]) -> Scale:
    """Wide enough for every mean, reference and interval of a playbook; wider intervals get an arrow."""
    values = [cluster["reference_r"] for cluster in findings]
    values += [cluster["mean_r"] for cluster in findings if cluster["mean_r"] is not None]
    for cluster in findings:
        if cluster["regime"] is None:
            values += [cluster[edge] for edge in ("lower_r", "upper_r") if cluster[edge] is not None]
    return spanning(values, LEFT, RIGHT)


def _axis(scale: Scale, top: float, foot: float) -> list[Child]:
    return [
        text(N_AT, TOP - 14, "n", "head", "end"),
        text(INTERVAL_AT, TOP - 14, "mean R and interval", "head", "end"),
        text(E_AT, TOP - 14, "E", "head", "end"),
        *ticks_below(scale, top, foot, 15, lambda tick: f"{tick:+g} R" if tick else "0 R"),
    ]


def _legend(present: set[str]) -> list[Child]:
    shapes: list[Child] = []
    x = LEFT
    for grade in GRADES:
        if grade in present:
            shapes += [marker(GRADE_SHAPES[grade], x, 16, f"mark {grade}"), text(x + 10, 20, grade)]
            x += 34 + 6.6 * len(grade)
    return [*shapes, line(x, 9, x, 23, "reference"), text(x + 8, 20, "reference")]


def _row(finding: Finding, y: float, scale: Scale) -> Element:
    whole, grade = finding["regime"] is None, finding["grade"]
    name = finding["playbook_id"] if whole else finding["regime"]
    reference = scale(finding["reference_r"])
    if finding["timeframe"]:
        name = f"{name} on {finding['timeframe']}"
    shapes: list[Child] = [
        tag("title", f"{cluster_name(finding)}: {grade}; {finding['reason']}"),
        line(8, y + ROW / 2, WIDTH - 8, y + ROW / 2, "rule"),
        text(10 if whole else 26, y + 4, name, "name whole" if whole else "name"),
        line(reference, y - ROW / 2, reference, y + ROW / 2, "reference"),
        figure(N_AT, y + 4, finding["n"], f"{finding['n']:,d}"),
    ]
    if finding["mean_r"] is not None:
        shapes += _interval(finding, y, scale)
    if finding["mean_r"] is not None:
        shapes.append(marker(GRADE_SHAPES[grade], scale(finding["mean_r"]), y, f"mark {grade}"))
        shapes += _numbers(finding, y)
    if finding["e_value"] is not None:
        shapes.append(figure(E_AT, y + 4, finding["e_value"], shown_e(finding["e_value"])))
    return tag("g", *shapes)


def _interval(finding: Finding, y: float, scale: Scale) -> list[Child]:
    lower = -OPEN if finding["lower_r"] is None else finding["lower_r"]
    upper = OPEN if finding["upper_r"] is None else finding["upper_r"]
    shapes: list[Child] = [line(scale(lower), y, scale(upper), y, f"interval {finding['grade']}")]
    for edge, way in ((lower, -1.0), (upper, 1.0)):
        x = scale(edge)
        if scale.inside(edge):
            shapes.append(line(x, y - 4, x, y + 4, f"interval {finding['grade']}"))
        else:
            points = f"{x:.1f},{y:.1f} {x - way * 7:.1f},{y - 4:.1f} {x - way * 7:.1f},{y + 4:.1f}"
            shapes.append(tag("polygon", points=points, class_=f"arrow {finding['grade']}"))
    return shapes


def _numbers(finding: Finding, y: float) -> list[Child]:
    """Mean and interval in columns of their own, so that status and points stand under each other."""
    mean, lower, upper = finding["mean_r"], finding["lower_r"], finding["upper_r"]
    shapes: list[Child] = [figure(INTERVAL_AT - 106, y + 4, mean, r_multiple(mean))]
    for edge, at, form in ((lower, INTERVAL_AT - 50, "[{},"), (upper, INTERVAL_AT, "{}]")):
        if edge is None:
            shapes.append(text(at, y + 4, form.format("open"), "tick", "end"))
        else:
            shapes.append(figure(at, y + 4, edge, form.format(f"{edge:+.2f}")))
    return shapes


def shown_e(value: float) -> str:
    """An e-value with three digits, in powers of ten where it is large."""
    return f"{value:.2f}" if value < 100 else f"{value:.3g}"
