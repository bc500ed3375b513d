"""The candles of a run in windows: at most 1,500 of what is in view, with fills, levels and reflections."""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from bokeh.models import HoverTool
from starlette.exceptions import HTTPException
from starlette.requests import Request

from schemas.errors import ConfigError, StoreError
from schemas.vocabulary import PolicyState
from services.journal.index import FILL_KINDS, JournalIndex, RecentRows, StoredEvent
from services.model_calls.quoting import visible
from trading_core.bars import BarSeries
from trading_core.live.growing_bars import GrowingBars
from worker.console.decisions import (
    BANDS,
    BLOCKS,
    CHANGE,
    DECIDED_KINDS,
    NOTHING,
    NS_PER_MS,
    Move,
    SymbolDecisions,
    decisions_of,
)
from worker.pages.figures import shown_time
from worker.pages.run_figures import MOST_CANDLES, candle_columns, candle_figure, mark_columns, source
from worker.pages.run_marks import (
    CLOSING,
    MARKED_KINDS,
    MOVES,
    OPENING,
    SymbolMarks,
    marks_of,
)
from worker.pages.run_page import figure_item
from worker.runs.replay import NotReplayable

if TYPE_CHECKING:
    from services.store import RunRecord, Store
    from services.store.journal_repository import JournalRepository

MOST_MARKS, KEPT, LAST_BARS = 1_000, 3, 150
NEAR_ROWS = 1_000  # that are looked through first for the next decision
WINDOW_KINDS = (*MARKED_KINDS, CHANGE)
STANDING = {CHANGE, BLOCKS, OPENING}  # the last of each before a window still holds in it
STATE = ("x0", "x1", "bottom", "top", "state", "time", "color", "hatch")
ReadBars = Callable[["Store", "RunRecord"], Awaitable[BarSeries | None]]
KeptBars = Callable[["Store", "RunRecord"], Awaitable[BarSeries]]


@dataclass(frozen=True)
class ChartedRun:
    """The bars of a run; of its journal each question reads the rows that it shows."""

    journal: "JournalRepository"
    run_id: str
    events: int
    bars: BarSeries

    async def head(self) -> dict[str, Any]:
        """What a chart begins with: symbols, the length of a bar and the last window, ms."""
        fills = await self.journal.count_by_symbol(self.run_id, FILL_KINDS)
        times, bar_ms = self.bars.times // NS_PER_MS, self.bars.bar_ns // NS_PER_MS
        return {
            "symbols": [{"name": visible(name), "fills": fills.get(name, 0)} for name in self.bars.symbols],
            "bar_ms": int(bar_ms),
            "bars": len(times),
            "from": int(times[0]),
            "start": int(times[max(0, len(times) - LAST_BARS)]),
            "end": int(times[-1] + bar_ms),
        }

    async def decision(self, symbol: int, at: int, move: Move, *, skips: bool) -> dict[str, Any]:
        """What was decided at a time, ns, or at the next or previous one at which something was.

        `at` is null where there is none; with `skips`, an event that started no evaluation counts. More rows
        are read each time that those near by hold no decision.
        """
        name, forward = self._find_symbol(symbol), move == "next"
        place, width = await self._place(at if move == "previous" else at + 1), NEAR_ROWS
        while True:
            first, last = (place, place + width) if forward else (place - width, place)
            span = range(max(first, 0), min(last, self.events))
            index, _ = await self._read(name, DECIDED_KINDS, span, width)
            times = decisions_of(index, name).times(span, skips=skips)
            if times:
                break
            if first <= 0 if not forward else last >= self.events:
                return NOTHING
            width *= 4
        found = times[0 if forward else -1]
        same = range(await self._place(found), await self._place(found + 1))
        index, _ = await self._read(name, DECIDED_KINDS, same, len(same))
        return decisions_of(index, name).decision(found)

    async def _place(self, at: int) -> int:
        return await self.journal.place(self.run_id, at)

    def _find_symbol(self, symbol: int) -> str:
        """The name of a symbol, by its number.

        Raises:
            HTTPException: there are fewer: 422.
        """
        if not 0 <= symbol < len(self.bars.symbols):
            raise HTTPException(422, f"there are {len(self.bars.symbols)} symbols, counted from 0")
        return self.bars.symbols[symbol]

    async def _read(
        self, symbol: str, kinds: Collection[str], span: range, most: int
    ) -> tuple[JournalIndex, int | None]:
        """Rows of a symbol and of none, with those before that still hold, up to where a kind has too many.

        The time, ns, of the last row where it ends before the span does.
        """
        some = partial(self.journal.some, self.run_id, symbol=symbol)
        standing = STANDING.intersection(kinds)
        rows = await self.journal.last_before(self.run_id, standing, span.start, 1, symbol=symbol)
        if opened := [row.seq for row in rows if row.kind == OPENING]:
            rows += await some((MOVES, CLOSING), range(opened[0], span.start), most)
        found = await some(kinds, span, most)
        full = {kind for kind, count in Counter(row.kind for row in found).items() if count == most}
        cut = min((max(row.seq for row in found if row.kind == kind) for kind in full), default=None)
        rows = sorted(rows, key=lambda row: row.seq)
        rows += [row for row in found if cut is None or row.seq <= cut]
        index, parsed = JournalIndex(), RecentRows()
        for row in rows:
            index.add(StoredEvent(row, parsed))
        return index, None if cut is None else rows[-1].known_at

    async def window(self, symbol: int, start: int, end: int) -> dict[str, Any]:
        """Columns of what lies between two times, ms; several bars are one candle where they are too many.

        `until` is where marks end, ms, because more of them lie in between than can be drawn; else null.
        """
        name, bars = self._find_symbol(symbol), self.bars
        span = range(
            await self._place(start * NS_PER_MS), await self._place(end * NS_PER_MS + bars.bar_ns + 1)
        )
        index, until = await self._read(name, WINDOW_KINDS, span, MOST_MARKS)
        until_label = int(bars.times[-1]) if until is None else until
        marks = marks_of(index, until_label).get(name, SymbolMarks((), (), ()))
        rows = np.flatnonzero(bars.present[:, symbol])
        labels = bars.times[rows] // NS_PER_MS
        first, last = np.searchsorted(labels, start), np.searchsorted(labels, end, side="right")
        step = max(1, -(-int(last - first) // MOST_CANDLES))
        candles = candle_columns(bars, symbol, rows[first - first % step : last], step)
        low, high = (min(candles["low"]), max(candles["high"])) if candles["low"] else (0.0, 1.0)
        lines = [
            line for line in marks.levels if line.end // NS_PER_MS >= start and line.start // NS_PER_MS <= end
        ]
        inside = SymbolMarks(
            tuple(mark for mark in marks.fills if start <= mark.label // NS_PER_MS <= end),
            tuple(lines),
            tuple(mark for mark in marks.reflections if start <= mark.known_at // NS_PER_MS <= end),
        )
        shown = (start, end if until is None else until // NS_PER_MS)
        return {
            "candles": candles,
            **mark_columns(bars, symbol, inside),
            "states": self._states(decisions_of(index, name), shown, (low, high)),
            "low": low - 0.05 * (high - low),
            "high": high,
            "bars_in_a_candle": step,
            "until": None if until is None else until // NS_PER_MS,
        }

    def _states(
        self, decided: SymbolDecisions, window: tuple[int, int], prices: tuple[float, float]
    ) -> dict[str, list[Any]]:
        """Policy states as bands below the lowest price."""
        first, last = int(self.bars.times[0]), int(self.bars.times[-1] + self.bars.bar_ns)
        start, end = max(first, window[0] * NS_PER_MS), min(last, window[1] * NS_PER_MS)
        bands = decided.bands(start, end) if start < end else []
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


class Charts:
    """The bars of the runs that were looked at last; those of a run that trades grow.

    Args:
        read_bars: the bars that a finished run traded; None where only the run played again says them.
        kept_bars: the bars that a run keeps in the store.
    """

    def __init__(self, read_bars: ReadBars, kept_bars: KeptBars) -> None:
        self._read_bars, self._kept_bars = read_bars, kept_bars
        self._kept: OrderedDict[str, BarSeries] = OrderedDict()
        self._reading = asyncio.Lock()

    async def of(self, store: "Store", record: "RunRecord") -> ChartedRun:
        """The chart of a run as far as it has come.

        Raises:
            HTTPException: its bars are nowhere: 409.
        """
        async with self._reading:
            try:
                bars = await self._bars(store, record, self._kept.pop(record.run_id, None))
            except (NotReplayable, ConfigError, StoreError, ValueError) as error:
                raise HTTPException(409, f"the bars of run {record.run_id}: {error}") from error
            if not len(bars.times):
                raise HTTPException(409, f"run {record.run_id} keeps no bars, or has traded none yet")
            self._kept[record.run_id] = bars
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return ChartedRun(store.journal, record.run_id, record.events, bars)

    async def _bars(self, store: "Store", record: "RunRecord", known: BarSeries | None) -> BarSeries:
        if known is None:
            known = await self._read_bars(store, record) if record.status == "finished" else None
            known = known or await self._kept_bars(store, record)
            return GrowingBars(known) if record.status == "running" and len(known.times) else known
        if isinstance(known, GrowingBars):
            async for row in store.trading.rows(record.run_id, len(known.times)):
                known.append(row.label, row.bars)
        return known


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
