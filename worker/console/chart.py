"""The candles of a run in windows: at most 1,500 of what is in view, with fills, levels and reflections."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from bokeh.models import HoverTool
from starlette.exceptions import HTTPException
from starlette.requests import Request

from schemas.errors import ConfigError, StoreError
from schemas.vocabulary import PolicyState
from services.journal.index import JournalIndex
from services.model_calls.quoting import visible
from trading_core.bars import BarSeries
from worker.console.decisions import BANDS, DECIDED_KINDS, NS_PER_MS, SymbolDecisions, decisions_of
from worker.pages.figures import r_multiple, shown_time
from worker.pages.run_figures import candle_figure, source
from worker.pages.run_marks import MARKED_KINDS, FillMark, SymbolMarks, marks_of
from worker.pages.run_page import figure_item
from worker.runs.replay import NotReplayable

if TYPE_CHECKING:
    from services.store import RunRecord, Store
    from worker.review.run_views import RunViews

MOST_CANDLES, MOST_MARKS, KEPT, LAST_BARS = 1_500, 1_000, 3, 150
CHARTED_KINDS = {*MARKED_KINDS, *DECIDED_KINDS}
STATE = ("x0", "x1", "bottom", "top", "state", "time", "color", "hatch")
ReadBars = Callable[["Store", "RunRecord"], Awaitable[BarSeries | None]]
KeptBars = Callable[["Store", "RunRecord"], Awaitable[BarSeries]]
UP, DOWN, NEUTRAL = "#009e73", "#d55e00", "#0072b2"
STATUS_COLORS = {"pass": UP, "revise": "#c79200", "block": DOWN, "error": "#b4568a"}


@dataclass(frozen=True)
class ChartedRun:
    """Bars and marks of a run as of one row of its journal."""

    bars: BarSeries
    marks: dict[str, SymbolMarks]
    decisions: dict[str, SymbolDecisions]

    def head(self) -> dict[str, Any]:
        """What a chart begins with: symbols, the length of a bar and the last window, ms."""
        times = self.bars.times // NS_PER_MS
        bar_ms = self.bars.bar_ns // NS_PER_MS
        first = times[max(0, len(times) - LAST_BARS)]
        return {
            "symbols": [
                {"name": visible(name), "fills": len(self.marks[name].fills) if name in self.marks else 0}
                for name in self.bars.symbols
            ],
            "bar_ms": int(bar_ms),
            "bars": len(times),
            "from": int(times[0]),
            "start": int(first),
            "end": int(times[-1] + bar_ms),
        }

    def of_symbol(self, symbol: int) -> SymbolDecisions:
        """Decisions on a symbol, by its number.

        Raises:
            HTTPException: there are fewer: 422.
        """
        if not 0 <= symbol < len(self.bars.symbols):
            raise HTTPException(422, f"there are {len(self.bars.symbols)} symbols, counted from 0")
        return self.decisions.get(self.bars.symbols[symbol], SymbolDecisions())

    def window(self, symbol: int, start: int, end: int) -> dict[str, Any]:
        """Columns of what lies between two times, ms; several bars are one candle where they are too many."""
        decided = self.of_symbol(symbol)
        bars, name = self.bars, self.bars.symbols[symbol]
        rows = np.flatnonzero(bars.present[:, symbol])
        labels = bars.times[rows] // NS_PER_MS
        first, last = np.searchsorted(labels, start), np.searchsorted(labels, end, side="right")
        step = max(1, -(-int(last - first) // MOST_CANDLES))
        chosen = rows[first - first % step : last]
        candles = self._candles(symbol, chosen, step)
        marks = self.marks.get(name, SymbolMarks((), (), ()))
        low, high = (
            (float(min(candles["low"])), float(max(candles["high"]))) if candles["low"] else (0.0, 1.0)
        )
        inside = range(int(start), int(end) + 1)
        fills = [mark for mark in marks.fills if mark.label // NS_PER_MS in inside]
        levels = [
            span for span in marks.levels if span.end // NS_PER_MS >= start and span.start // NS_PER_MS <= end
        ]
        seen = [mark for mark in marks.reflections if mark.known_at // NS_PER_MS in inside]
        return {
            "candles": candles,
            "fills": _fills(fills[:MOST_MARKS]),
            "levels": {
                "x0": [span.start // NS_PER_MS for span in levels[:MOST_MARKS]],
                "x1": [span.end // NS_PER_MS for span in levels[:MOST_MARKS]],
                "y": [span.price for span in levels[:MOST_MARKS]],
                "color": [DOWN if span.kind == "stop" else NEUTRAL for span in levels[:MOST_MARKS]],
            },
            "reflections": self._reflections(seen[:MOST_MARKS], low),
            "states": self._states(decided, (start, end), (low, high)),
            "low": low,
            "high": high,
            "bars_in_a_candle": step,
        }

    def _states(
        self, decided: SymbolDecisions, window: tuple[int, int], prices: tuple[float, float]
    ) -> dict[str, list[Any]]:
        """Policy states as bands below the lowest price."""
        first, last = int(self.bars.times[0]), int(self.bars.times[-1] + self.bars.bar_ns)
        start, end = max(first, window[0] * NS_PER_MS), min(last, window[1] * NS_PER_MS)
        bands = decided.bands(start, end)[:MOST_MARKS] if start < end else []
        low, room = prices[0], (prices[1] - prices[0]) or 1.0
        looks = [BANDS[PolicyState(state)] for _, _, state in bands]
        return {
            "x0": [since // NS_PER_MS for since, _, _ in bands],
            "x1": [until // NS_PER_MS for _, until, _ in bands],
            "bottom": [low - 0.09 * room] * len(bands),
            "top": [low - 0.04 * room] * len(bands),
            "state": [state for _, _, state in bands],
            "time": [f"{shown_time(since)} to {shown_time(until)}" for since, until, _ in bands],
            "color": [color for color, _ in looks],
            "hatch": [hatch for _, hatch in looks],
        }

    def _candles(self, symbol: int, rows: Any, step: int) -> dict[str, list[Any]]:
        bars = self.bars
        starts = np.arange(0, len(rows), step)
        if not len(starts):
            return {name: [] for name in ("x", "time", "open", "high", "low", "close", "width", "color")}
        ends = np.minimum(starts + step, len(rows)) - 1
        opened, closed = bars.open[rows[starts], symbol], bars.close[rows[ends], symbol]
        times = bars.times[rows]
        return {
            "x": (times[starts] // NS_PER_MS).tolist(),
            "time": [
                shown_time(a) if a == b else f"{shown_time(a)} to {shown_time(b)}"
                for a, b in zip(times[starts].tolist(), times[ends].tolist(), strict=True)
            ],
            "open": opened.tolist(),
            "high": np.maximum.reduceat(bars.high[rows, symbol], starts).tolist(),
            "low": np.minimum.reduceat(bars.low[rows, symbol], starts).tolist(),
            "close": closed.tolist(),
            "width": [0.7 * step * bars.bar_ns / NS_PER_MS] * len(starts),
            "color": np.where(closed >= opened, UP, DOWN).tolist(),
        }

    def _reflections(self, marks: list[Any], low: float) -> dict[str, list[Any]]:
        found = [", ".join(dict.fromkeys(str(item["code"]) for item in mark.findings)) for mark in marks]
        return {
            "x": [mark.known_at // NS_PER_MS for mark in marks],
            "y": [low] * len(marks),
            "time": [shown_time(mark.known_at) for mark in marks],
            "status": [visible(mark.status) for mark in marks],
            "decision": [visible(mark.decision or "not asked") for mark in marks],
            "told": [visible(text or "nothing found") for text in found],
            "color": [STATUS_COLORS.get(mark.status, NEUTRAL) for mark in marks],
            "size": [7 if mark.matters else 4 for mark in marks],
            "chain": [None] * len(marks),
        }


def _fills(marks: list[FillMark]) -> dict[str, list[Any]]:
    def marker(mark: FillMark) -> str:
        if mark.kind == "exit_filled":
            return "x"
        if mark.kind != "entry_filled":
            return "diamond"
        return "triangle" if mark.direction == "long" else "inverted_triangle"

    return {
        "x": [mark.label // NS_PER_MS for mark in marks],
        "y": [mark.price for mark in marks],
        "time": [shown_time(mark.label) for mark in marks],
        "told": [
            visible(" ".join(filter(None, (mark.kind, mark.direction, mark.playbook_id, mark.reason))))
            for mark in marks
        ],
        "r": [r_multiple(mark.r) for mark in marks],
        "marker": [marker(mark) for mark in marks],
        "color": [NEUTRAL if mark.r is None else UP if mark.r > 0 else DOWN for mark in marks],
        "chain": [mark.event.own_id for mark in marks],
    }


class Charts:
    """Bars and marks of the runs that were looked at last, each read once as long as no row is added.

    Args:
        read_bars: the bars that a finished run traded; None where only the run played again says them.
        kept_bars: the bars that a run keeps in the store.
    """

    def __init__(self, read_bars: ReadBars, kept_bars: KeptBars) -> None:
        self._read_bars, self._kept_bars = read_bars, kept_bars
        self._kept: OrderedDict[tuple[str, int], ChartedRun] = OrderedDict()
        self._reading = asyncio.Lock()

    async def of(self, store: "Store", views: "RunViews", record: "RunRecord") -> ChartedRun:
        """The chart of a run as far as it has come.

        Raises:
            HTTPException: its bars are nowhere: 409.
        """
        key = record.run_id, record.events
        async with self._reading:
            if key not in self._kept:
                try:
                    bars = await self._read_bars(store, record) if record.status == "finished" else None
                    bars = bars or await self._kept_bars(store, record)
                except (NotReplayable, ConfigError, StoreError, ValueError) as error:
                    raise HTTPException(409, f"the bars of run {record.run_id}: {error}") from error
                if not len(bars.times):
                    raise HTTPException(409, f"run {record.run_id} keeps no bars, or has traded none yet")
                if record.status == "running":  # its rows are read once, and later ones added
                    index = (await views.view(record.run_id, None)).index
                else:
                    rows = store.journal.as_stored(record.run_id, CHARTED_KINDS)
                    index = await JournalIndex.read(rows, lazily=True)
                self._kept[key] = ChartedRun(bars, marks_of(index, int(bars.times[-1])), decisions_of(index))
                while len(self._kept) > KEPT:
                    self._kept.popitem(last=False)
            self._kept.move_to_end(key)
            return self._kept[key]


def charts_of(request: Request) -> Charts:
    """The charts of the console that a request is asked of."""
    charts: Charts = request.app.state.charts
    return charts


def chart_figure() -> dict[str, Any]:
    """The empty figure, as `Bokeh.embed.embed_item` takes it."""
    made = candle_figure()
    bands = made.quad(
        left="x0", right="x1", bottom="bottom", top="top", source=source("states", STATE),
        color="color", hatch_pattern="hatch", hatch_alpha=0.6,
    )  # fmt: skip
    made.add_tools(HoverTool(renderers=[bands], tooltips=[("state", "@state"), ("time", "@time")]))
    return figure_item(made)
