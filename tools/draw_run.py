"""Draws a run as SVG: the account beside buy and hold, policies frozen, trades in R, high-level reports.

    uv run python -m tools.draw_run OUT PICTURE

OUT is a folder made by `thinktwice backtest --out`; what is not in it comes from the store that its summary
names. Every mark is a row of that run; curves are thinned to what the width can show, never smoothed.
"""

import asyncio
import csv
import json
import math
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, indent, tostring

import numpy as np

from schemas.canonical import ns_to_datetime
from services.store import open_store
from trading_core.bars import BarSeries
from worker.feeds.selected_bars import load_bars
from worker.pages import shapes
from worker.pages.markup import Child, tag
from worker.pages.shapes import Scale, line, path, text
from worker.runs.replay import stored_settings

ACCOUNT, HOLD, GAIN, LOSS, FROZEN, REPORT = "#1f5fa8", "#8a8f98", "#2e8b57", "#c0392b", "#7d8fb3", "#b8860b"
WIDTH, HEIGHT, LEFT, RIGHT = 960.0, 560.0, 64.0, 930.0
FONT = "system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif"


@dataclass(frozen=True)
class Drawn:
    """Everything the picture shows; times in years."""

    title: str
    subtitle: str
    times: Sequence[float]
    account: Sequence[float]
    hold: Sequence[float]
    frozen: Counter[str]
    trades: Sequence[tuple[float, float]]
    reports: Sequence[float]


def years(moment: datetime) -> float:
    """A time as a year with its fraction."""
    start = datetime(moment.year, 1, 1, tzinfo=UTC)
    length = datetime(moment.year + 1, 1, 1, tzinfo=UTC) - start
    return moment.year + (moment - start) / length


def hold_curve(bars: BarSeries) -> list[float]:
    """Value of one unit of money split equally over all symbols, each bought at its first open and kept."""
    growth = np.ones(bars.shape)
    for s in range(bars.shape[1]):
        rows = np.flatnonzero(bars.present[:, s])
        filled = np.maximum.accumulate(np.where(bars.present[:, s], np.arange(bars.shape[0]), -1))
        held = filled >= 0
        growth[held, s] = bars.close[filled[held], s] / bars.open[rows[0], s]
    return [float(value) for value in growth.mean(axis=1)]


def table_of(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file with a header."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


async def read_run(out: Path, db: str | None) -> Drawn:
    """Gather the run behind an output folder."""
    summary = json.loads((out / "summary.json").read_text("utf-8"))
    async with await open_store(db or summary["journal"]["url"], create=False) as store:
        record = await store.runs.find(summary["run_id"])
        rows = [row async for row in store.journal.rows(record.run_id, kinds={"policy_frozen"})]
    settings = stored_settings(record)
    runtime = settings.runtime.model_copy(update={"data": record.data["path"]})
    bars = load_bars(settings.model_copy(update={"runtime": runtime}))
    equity = table_of(out / "equity.csv")
    cash = settings.account.cash
    return Drawn(
        title="The account beside buy and hold",
        subtitle=subtitle(summary),
        times=[years(datetime.fromisoformat(row["time"])) for row in equity],
        account=[float(row["equity"]) / cash for row in equity],
        hold=hold_curve(bars),
        frozen=Counter(f"{ns_to_datetime(row.known_at):%Y-%m}" for row in rows),
        trades=[
            (years(datetime.fromisoformat(row["known_at"])), float(row["r"]))
            for row in table_of(out / "trades.csv")
        ],
        reports=[
            years(datetime.fromisoformat(report["known_at"])) for report in summary["high_level"]["reports"]
        ],
    )


def subtitle(summary: dict[str, Any]) -> str:
    """One line of figures."""
    performance, data = summary["performance"], summary["data"]
    total, hold = (100 * performance[name] for name in ("total_return", "buy_and_hold_return"))
    return (
        f"{', '.join(data['symbols'])}, {data['timeframe']}, {data['start'][:10]} to {data['end'][:10]}: "
        f"{total:+.1f} % against {hold:+.1f} %, "
        f"{performance['trades']} trades, {summary['policy_loop']['frozen']} policies, "
        f"{summary['high_level']['runs']} reports"
    )


def ticks(low: float, high: float) -> list[float]:
    """Round values for a logarithmic axis."""
    steps = [
        base * 10.0**power
        for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        for base in (1.0, 2.0, 5.0)
    ]
    inside = [step for step in steps if low <= step <= high]
    return inside if len(inside) > 1 else [low, high]


def small(x: float, y: float, words: str, anchor: str = "start") -> Element:
    """A label of an axis, a caption or a year."""
    return text(x, y, words, None, anchor, font_size=11, fill="#555")


@dataclass(frozen=True)
class Panel:
    """A rectangle of the picture with its scales of time and value, and what is drawn on it."""

    x: Scale
    y: Scale
    shapes: list[Child] = field(default_factory=list)

    def grid(self, value: float, label: str) -> None:
        """A horizontal line with its label at the left."""
        y = self.y(value)
        self.shapes.append(line(self.x.start, y, self.x.end, y, stroke="#e6e8eb"))
        self.shapes.append(small(self.x.start - 8, y + 4, label, "end"))

    def caption(self, words: str) -> None:
        """What the panel shows, above its left corner."""
        self.shapes.append(small(self.x.start, self.y.end - 6, words))

    def curve(self, points: Sequence[tuple[float, float]], color: str, width: float) -> None:
        """A line through (time, value) points."""
        places = [(self.x(time), self.y(value)) for time, value in points]
        self.shapes.append(
            path(places, fill="none", stroke=color, stroke_width=width, stroke_linejoin="round")
        )


def picture(run: Drawn) -> str:
    """The SVG text: shapes on a white card, so that it reads on light and dark pages alike."""
    first, last = run.times[0], run.times[-1]
    across = Scale(first, last, LEFT, RIGHT)
    values = [*run.account, *run.hold]
    multiples = [r for _, r in run.trades]
    top = Panel(across, Scale(min(values) * 0.95, max(values) * 1.05, 330.0, 72.0, log=True))
    counts = Panel(across, Scale(0.0, max(run.frozen.values(), default=1), 420.0, 366.0))
    stems = Panel(across, Scale(min([*multiples, -1.0]), max([*multiples, 1.0]), 524.0, 454.0))
    draw_account(top, run)
    draw_counts(counts, run)
    draw_trades(stems, run)
    whole = shapes.picture(
        WIDTH,
        HEIGHT,
        f"{run.title}. {run.subtitle}",
        "value of the account, policies frozen a month, closed trades in R",
        tag("rect", width=WIDTH, height=HEIGHT, rx=8, fill="#ffffff"),
        text(LEFT, 30, run.title, None, font_size=18, font_weight="bold", fill="#222"),
        text(LEFT, 50, run.subtitle, None, font_size=12, fill="#555"),
        *(shape for panel in (top, counts, stems) for shape in panel.shapes),
        *(
            small(across(year), 546, str(year), "middle")
            for year in range(math.ceil(first), math.floor(last) + 1)
        ),
        xmlns="http://www.w3.org/2000/svg",
        font_family=FONT,
    )
    indent(whole, "")
    return tostring(whole, encoding="unicode") + "\n"


def draw_account(panel: Panel, run: Drawn) -> None:
    """Both curves on a logarithmic axis, a mark for every report, and the legend from the right."""
    for value in ticks(panel.y.low, panel.y.high):
        panel.grid(value, f"{value:g}")
    panel.caption("value of 1 (log)")
    step = max(1, len(run.times) // 800)
    for curve, color, width in ((run.hold, HOLD, 1.4), (run.account, ACCOUNT, 2.0)):
        points = [*zip(run.times, curve, strict=True)]
        panel.curve([*points[::step], points[-1]], color, width)
    foot, top = panel.y.start, panel.y.end
    for moment in run.reports:
        x = panel.x(moment)
        panel.shapes.append(line(x, top, x, foot, stroke=REPORT, stroke_dasharray="2 4", stroke_opacity=0.7))
        panel.shapes.append(tag("path", d=f"M{x - 4:.1f},{foot + 8:g} h8 l-4,-8 z", fill=REPORT))
    x = RIGHT
    for name, color in (("high-level report", REPORT), ("buy and hold", HOLD), ("account", ACCOUNT)):
        panel.shapes.append(text(x, top - 6, name, None, "end", font_size=12, fill="#222"))
        x -= 6.6 * len(name) + 6
        panel.shapes.append(line(x - 18, top - 10, x, top - 10, stroke=color, stroke_width=3))
        x -= 34


def draw_counts(panel: Panel, run: Drawn) -> None:
    """Policies frozen in each month."""
    panel.caption("policies frozen a month")
    panel.grid(0.0, "0")
    panel.grid(panel.y.high, f"{panel.y.high:g}")
    for month, count in sorted(run.frozen.items()):
        year, number = map(int, month.split("-"))
        x, y = panel.x(year + (number - 1) / 12), panel.y(count)
        width = max(0.5, panel.x(year + number / 12) - x - 0.6)
        panel.shapes.append(tag("rect", x=x, y=y, width=width, height=panel.y.start - y, fill=FROZEN))


def draw_trades(panel: Panel, run: Drawn) -> None:
    """Every closed trade as a stem from zero to its R."""
    panel.caption("closed trades in R")
    for value in (math.ceil(panel.y.low), 0, math.floor(panel.y.high)):
        panel.grid(float(value), f"{value:+d}" if value else "0")
    for moment, r in run.trades:
        panel.curve([(moment, 0.0), (moment, r)], GAIN if r > 0 else LOSS, 1.4)


def draw(out: Path, target: Path, db: str | None = None) -> None:
    """Write the picture of the run behind an output folder."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(picture(asyncio.run(read_run(out, db))), "utf-8")


if __name__ == "__main__":
    draw(Path(sys.argv[1]), Path(sys.argv[2]))
