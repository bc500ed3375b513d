"""Holds and excursions of each playbook beside what its file expects: what is off has another shape.

Holds are a pair, the median and the ninetieth percentile, over the band that the file expects; excursions are
one mark each over the expected tick.
"""

from collections.abc import Sequence
from typing import Any
from xml.etree.ElementTree import Element

from worker.pages.shapes import Child, Scale, figure, line, marker, picture, spanning, tag, text, ticks_below

WIDTH, ROW, TOP, BOTTOM = 940.0, 34.0, 62.0, 30.0
APART = 24.0  # marks nearer than this have their labels on their outer sides
PANELS = ((210.0, 430.0), (500.0, 680.0), (750.0, 930.0))
Check = dict[str, Any]


def expectation_plot(checks: Sequence[Check]) -> Element:
    """One row per playbook, three panels: hold in bars, MAE of winners, MFE of all."""
    height = TOP + ROW * len(checks) + BOTTOM
    scales = _scales(checks)
    heads = ("hold, bars: P50 and P90", "MAE of winners, P80", "MFE, median")
    shapes: list[Child] = [*_legend()]
    for scale, head, unit in zip(scales, heads, ("", " R", " R"), strict=True):
        shapes += _axis(scale, head, unit, height - BOTTOM + 2)
    for position, check in enumerate(checks):
        shapes.append(_row(check, TOP + ROW * (position + 0.5), scales))
    return picture(
        WIDTH,
        height,
        "Hold, MAE and MFE of each playbook against its expectation",
        f"{len(checks)} playbooks; the table of expectations holds the same numbers",
        *shapes,
    )


def _scales(checks: Sequence[Check]) -> tuple[Scale, Scale, Scale]:
    names = (
        ("hold_p50_bars", "hold_p90_bars", "expected_hold_p50_bars", "expected_hold_p90_bars"),
        ("winner_mae_p80_r", "expected_winner_mae_p80_r"),
        ("mfe_p50_r", "expected_mfe_p50_r"),
    )
    made = []
    for fields, (left, right) in zip(names, PANELS, strict=True):
        values = [check[field] for check in checks for field in fields if check[field] is not None]
        made.append(spanning([0.0, *values], left, right))
    return made[0], made[1], made[2]


def _legend() -> list[Child]:
    return [
        tag("rect", x=210, y=11, width=26, height=11, class_="band"),
        text(242, 20, "expected"),
        marker("circle", 318, 16, "mark fine"),
        text(328, 20, "measured"),
        marker("diamond", 404, 16, "mark missed"),
        text(414, 20, "measured and off"),
    ]


def _axis(scale: Scale, head: str, unit: str, foot: float) -> list[Child]:
    ticks = ticks_below(scale, TOP - 6, foot, 14, lambda tick: f"{tick:g}{unit}", 4)
    return [text(scale.start, TOP - 16, head, "head"), *ticks]


def _row(check: Check, y: float, scales: tuple[Scale, Scale, Scale]) -> Element:
    hold, mae, mfe = scales
    missed = check["missed"]
    shapes: list[Child] = [
        tag("title", f"{check['playbook_id']}: off {', '.join(missed) or 'nothing'}"),
        line(8, y + ROW / 2, WIDTH - 8, y + ROW / 2, "rule"),
        text(10, y + 4, check["playbook_id"], "name whole"),
        *_hold(check, y, hold, "hold" in missed),
        *_excursion(check["winner_mae_p80_r"], check["expected_winner_mae_p80_r"], y, mae, "MAE" in missed),
        *_excursion(check["mfe_p50_r"], check["expected_mfe_p50_r"], y, mfe, "MFE" in missed),
    ]
    return tag("g", *shapes)


def _hold(check: Check, y: float, scale: Scale, missed: bool) -> list[Child]:
    low, high = scale(check["expected_hold_p50_bars"]), scale(check["expected_hold_p90_bars"])
    first, last = check["hold_p50_bars"], check["hold_p90_bars"]
    close = 0 < scale(last) - scale(first) < APART
    return [
        tag("rect", x=low, y=y - 8, width=max(high - low, 2.0), height=16, class_="band"),
        line(scale(first), y, scale(last), y, "span missed" if missed else "span fine"),
        *_mark(first, y, scale, missed, "end" if close else "middle"),
        *(() if first == last else _mark(last, y, scale, missed, "start" if close else "middle")),
    ]


def _excursion(value: float | None, expected: float, y: float, scale: Scale, missed: bool) -> list[Child]:
    x = scale(expected)
    shapes: list[Child] = [tag("rect", x=x - 2.5, y=y - 9, width=5, height=18, class_="band")]
    if value is None:
        return shapes
    shapes.append(line(x, y, scale(value), y, "span missed" if missed else "span fine"))
    return [*shapes, *_mark(value, y, scale, missed)]


def _mark(value: float, y: float, scale: Scale, missed: bool, anchor: str = "middle") -> list[Child]:
    shape, name = ("diamond", "missed") if missed else ("circle", "fine")
    return [
        marker(shape, scale(value), y, f"mark {name}"),
        figure(scale(value), y - 9, value, f"{value:g}" if value == int(value) else f"{value:.2f}", anchor),
    ]
