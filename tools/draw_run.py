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
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from schemas.canonical import ns_to_datetime
from services.store import open_store
from tools.svg_canvas import Canvas, Panel
from trading_core.bars import BarSeries
from worker.feeds.selected_bars import load_bars
from worker.runs.replay import stored_settings

ACCOUNT, HOLD, GAIN, LOSS, FROZEN, REPORT = "#1f5fa8", "#8a8f98", "#2e8b57", "#c0392b", "#7d8fb3", "#b8860b"
WIDTH, LEFT, RIGHT = 960.0, 64.0, 930.0


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
        reports=[years(datetime.fromisoformat(one["known_at"])) for one in summary["high_level"]["reports"]],
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


def picture(run: Drawn) -> str:
    """The SVG text."""
    first, last = run.times[0], run.times[-1]
    canvas = Canvas(WIDTH, 560.0)
    canvas.text(LEFT, 30, run.title, size=18, weight="bold")
    canvas.text(LEFT, 50, run.subtitle, size=12, color="#555")
    values = [*run.account, *run.hold]
    low, high = min(values) * 0.95, max(values) * 1.05
    top = Panel(canvas, (LEFT, RIGHT), (72.0, 330.0), (first, last), (math.log(low), math.log(high)))
    counts = Panel(
        canvas, (LEFT, RIGHT), (366.0, 420.0), (first, last), (0.0, max(run.frozen.values(), default=1))
    )
    multiples = [r for _, r in run.trades]
    worst, best = min(multiples, default=-1.0), max(multiples, default=1.0)
    stems = Panel(canvas, (LEFT, RIGHT), (454.0, 524.0), (first, last), (min(worst, -1.0), max(best, 1.0)))
    draw_account(top, run, low, high)
    draw_counts(counts, run)
    draw_trades(stems, run)
    for year in range(math.ceil(first), math.floor(last) + 1):
        canvas.text(stems.x(year), 546, str(year), size=11, color="#555", anchor="middle")
    return canvas.svg(f"{run.title}. {run.subtitle}")


def draw_account(panel: Panel, run: Drawn, low: float, high: float) -> None:
    """Both curves on a logarithmic axis, and a mark for every report."""
    for value in ticks(low, high):
        panel.grid(math.log(value), f"{value:g}")
    panel.caption("value of 1 (log)")
    step = max(1, len(run.times) // 800)
    for curve, color, width in ((run.hold, HOLD, 1.4), (run.account, ACCOUNT, 2.0)):
        points = [(t, math.log(v)) for t, v in zip(run.times, curve, strict=True)]
        panel.line([*points[::step], points[-1]], color, width)
    for moment in run.reports:
        panel.mark(moment, REPORT)
    panel.legend([("account", ACCOUNT), ("buy and hold", HOLD), ("high-level report", REPORT)])


def draw_counts(panel: Panel, run: Drawn) -> None:
    """Policies frozen in each month."""
    panel.caption("policies frozen a month")
    panel.grid(0.0, "0")
    panel.grid(panel.values[1], f"{panel.values[1]:g}")
    for month, count in sorted(run.frozen.items()):
        year, number = map(int, month.split("-"))
        left = max(year + (number - 1) / 12, panel.times[0])
        panel.bar(left, min(year + number / 12, panel.times[1]), count, FROZEN)


def draw_trades(panel: Panel, run: Drawn) -> None:
    """Every closed trade as a stem from zero to its R."""
    panel.caption("closed trades in R")
    for value in (math.ceil(panel.values[0]), 0, math.floor(panel.values[1])):
        panel.grid(float(value), f"{value:+d}" if value else "0")
    for moment, r in run.trades:
        panel.line([(moment, 0.0), (moment, r)], GAIN if r > 0 else LOSS, 1.4)


def draw(out: Path, target: Path, db: str | None = None) -> None:
    """Write the picture of the run behind an output folder."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(picture(asyncio.run(read_run(out, db))), "utf-8")


if __name__ == "__main__":
    draw(Path(sys.argv[1]), Path(sys.argv[2]))
