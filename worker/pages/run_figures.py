"""Bokeh figures of a run, for a notebook with their data and for the page of the run without.

The page's script fills the sources by what is in view. No text of others stands in a title or on an axis:
there it could be read as a formula.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from bokeh.models import ColumnDataSource, FactorRange, HoverTool, NumeralTickFormatter, Range1d, TapTool
from bokeh.plotting import figure

from services.model_calls.quoting import visible
from trading_core.bars import BarSeries
from worker.pages.figures import r_multiple, shown_time
from worker.pages.run_data import milliseconds_of
from worker.pages.run_marks import SymbolMarks
from worker.pages.run_picture import RunPicture, drawn_rows

UP, DOWN, NEUTRAL, STOP, TARGET = "#009e73", "#d55e00", "#0072b2", "#d55e00", "#0072b2"
STATUS_COLORS = {"pass": "#009e73", "revise": "#c79200", "block": "#d55e00", "error": "#b4568a"}
OTHER_COLOR = "#8a929c"
MOST_CANDLES, MOST_POINTS = 1_500, 3_000
STEP_R = 0.5
TOOLS = "xpan,xwheel_zoom,box_zoom,reset"
Columns = Mapping[str, Any]

CURVE = ("x", "time", "equity", "hold", "exposed", "drawdown", "rolling")
CANDLE = ("x", "time", "open", "high", "low", "close", "width", "color")
FILL = ("x", "y", "time", "told", "r", "marker", "color", "chain")
LEVEL = ("x0", "x1", "y", "color")
REFLECTION = ("x", "y", "time", "status", "decision", "told", "color", "size", "chain")
EXCURSION = ("x", "y", "told", "r", "color", "chain")


def source(name: str, columns: Sequence[str], data: Columns | None = None) -> ColumnDataSource:
    """A source of these columns, empty where the page's script fills it."""
    return ColumnDataSource(data={key: [] if data is None else data[key] for key in columns}, name=name)


def curve_figures(data: Columns | None = None, *, is_flat: bool = False) -> list[figure]:
    """Equity beside buy and hold, drawdown, rolling Sharpe ratio, over one time axis; the first if flat."""
    shared = source("curve", CURVE, data)
    across = _range([] if data is None else data["x"], "curve_x")
    equity = _over_time("equity", 300, across, "equity")
    equity.y_range = _fit_range(data, ("equity", "hold", "exposed"), "equity_y")
    run = equity.line("x", "equity", source=shared, color=NEUTRAL, line_width=2, legend_label="run")
    held: dict[str, Any] = {"source": shared, "color": OTHER_COLOR}
    equity.line("x", "hold", **held, legend_label="buy and hold", name="hold_line")
    label = "buy and hold at the run's exposure"
    equity.line("x", "exposed", **held, line_dash="dashed", legend_label=label, name="exposed_line")
    equity.yaxis.formatter = NumeralTickFormatter(format="0,0")
    equity.legend.location, equity.legend.click_policy = "top_left", "hide"
    shown = {"buy and hold": "@hold{0,0.00}", "at its exposure": "@exposed{0,0.00}"}
    equity.add_tools(_hover([run], time="@time", run="@equity{0,0.00}", **shown))
    if is_flat:
        return [equity]
    down = _over_time("drawdown", 150, across, "drawdown")
    down.y_range = _fit_range(data, ("drawdown",), "drawdown_y")
    down.varea("x", 0, "drawdown", source=shared, color=DOWN, fill_alpha=0.25)
    fallen = down.line("x", "drawdown", source=shared, color=DOWN)
    down.yaxis.formatter = NumeralTickFormatter(format="0.0 %")
    down.add_tools(_hover([fallen], time="@time", drawdown="@drawdown{0.0 %}"))
    rolling = _over_time("rolling Sharpe", 150, across, "rolling")
    rolling.y_range = _fit_range(data, ("rolling",), "rolling_y")
    rolled = [rolling.line("x", "rolling", source=shared, color=NEUTRAL)]
    rolling.add_tools(_hover(rolled, time="@time", Sharpe="@rolling{0.00}"))
    down.toolbar_location = rolling.toolbar_location = None
    return [equity, down, rolling]


def candle_figure(data: Mapping[str, Columns] | None = None) -> figure:
    """Candles with fills, lines of stop and target, and a dot for each reflection."""
    bars = source("candles", CANDLE, None if data is None else data["candles"])
    levels = source("levels", LEVEL, None if data is None else data["levels"])
    fills = source("fills", FILL, None if data is None else data["fills"])
    seen = source("reflections", REFLECTION, None if data is None else data["reflections"])
    edges = [] if data is None else data["candles"]["x"]
    made = _over_time("price", 460, _range(edges, "candle_x"), "candle_plot")
    made.y_range = _fit_range(None if data is None else data["candles"], ("low", "high"), "candle_y")
    made.segment("x", "high", "x", "low", source=bars, color="color")
    bodies = made.vbar("x", "width", "close", "open", source=bars, color="color", line_color="color")
    made.segment("x0", "y", "x1", "y", source=levels, color="color", line_width=1.5, line_dash="dashed")
    dots = made.scatter("x", "y", size="size", source=seen, color="color", line_color=None, fill_alpha=0.75)
    marks = made.scatter("x", "y", size=11, marker="marker", source=fills, color="color", line_width=2)
    made.add_tools(
        _hover([bodies], time="@time", open="@open", high="@high", low="@low", close="@close"),
        _hover([marks], time="@time", fill="@told", R="@r"),
        _hover([dots], time="@time", reflection="@status", judge="@decision", findings="@told"),
        _tap(marks, dots),
    )
    return made


def excursion_figure(data: Columns | None = None) -> figure:
    """The worst point of each trade against its best, both in R."""
    shared = source("excursions", EXCURSION, data)
    made = _figure("MFE in R", 340, "excursion_plot", tools=f"pan,{TOOLS}")
    made.x_range, made.y_range = (_fit_range(data, (axis,), f"excursion_{axis}") for axis in "xy")
    made.xaxis.axis_label = "MAE in R"
    dots = made.scatter("x", "y", size=7, source=shared, color="color", line_color=None, fill_alpha=0.6)
    made.add_tools(_hover([dots], trade="@told", R="@r", MAE="@x{0.00} R", MFE="@y{0.00} R"), _tap(dots))
    return made


def year_figure(years: Sequence[tuple[int, float]]) -> figure:
    """The return of each calendar year."""
    names, gains = [str(year) for year, _ in years], [gain for _, gain in years]
    made = _bars(names, gains, [fill_color(gain) for gain in gains], "return", "years")
    made.yaxis.formatter = NumeralTickFormatter(format="0 %")
    made.add_tools(_hover(made.renderers, year="@name", **{"return": "@value{0.0 %}"}))
    return made


def spread_figure(r: Sequence[float]) -> figure:
    """How many trades brought how much, in steps of half an R; what lies beyond 10 R stands at the edge."""
    steps = np.clip(np.floor(np.asarray(r, dtype=np.float64) / STEP_R), -20, 20).astype(np.int64)
    found = np.arange(steps.min(), steps.max() + 1) if steps.size else steps
    names = [f"{STEP_R * step:+.1f} to {STEP_R * (step + 1):+.1f}" for step in found.tolist()]
    counts = [int((steps == step).sum()) for step in found]
    made = _bars(names, counts, [UP if step >= 0 else DOWN for step in found], "trades", "spread")
    made.add_tools(_hover(made.renderers, R="@name", trades="@value"))
    return made


def _bars(names: list[str], values: Sequence[float], colors: list[str], label: str, name: str) -> figure:
    made = _by_name(label, 220, name, names)
    data = {"name": names, "value": list(values), "color": colors}
    made.vbar(x="name", top="value", width=0.8, color="color", source=ColumnDataSource(data=data))
    return made


def outcome_figure(outcomes: Mapping[str, Any]) -> figure:
    """Reflections of each period by how they ended, stacked."""
    periods: list[str] = outcomes["periods"]
    names = list(outcomes["counts"])
    shared = ColumnDataSource(data={"period": periods, **outcomes["counts"]})
    made = _by_name("reflections", 260, "outcomes", periods)
    colors = [STATUS_COLORS.get(name, OTHER_COLOR) for name in names]
    stacks = made.vbar_stack(names, x="period", width=0.85, color=colors, source=shared, legend_label=names)
    made.add_tools(_hover(stacks, period="@period", **{name: f"@{{{name}}}" for name in names}))
    return made


def run_figures(picture: RunPicture, symbol: str | None = None) -> list[figure]:
    """The figures of a run with their data; candles of one symbol, of the most traded one by default.

    Raises:
        KeyError: the run has no such symbol.
    """
    names = list(picture.bars.symbols)
    s = picture.most_traded if symbol is None else {name: k for k, name in enumerate(names)}[symbol]
    return [
        *curve_figures(_curves(picture), is_flat=picture.is_flat),
        candle_figure(_candles(picture, s)),
        excursion_figure(_excursions(picture)),
        outcome_figure(picture.outcomes),
    ]


def _curves(picture: RunPicture) -> Columns:
    times = picture.bars.close_times
    rows = drawn_rows(picture.curves.values(), MOST_POINTS // 2)
    curves = {name: values[rows] for name, values in picture.curves.items()}
    undefined = np.full(len(rows), np.nan)
    found = {name: curves.get(name, undefined) for name in CURVE[2:]}
    return {"x": times[rows] / 1e6, "time": [shown_time(int(times[row])) for row in rows], **found}


def _candles(picture: RunPicture, s: int) -> dict[str, Columns]:
    bars = picture.bars
    rows = np.flatnonzero(bars.present[:, s])
    marks = picture.marks.get(bars.symbols[s], SymbolMarks((), (), ()))
    step = max(1, -(-len(rows) // MOST_CANDLES))
    return {"candles": candle_columns(bars, s, rows, step), **mark_columns(bars, s, marks)}


def candle_columns(bars: BarSeries, s: int, rows: npt.NDArray[np.int64], step: int) -> Columns:
    """Candles of a symbol at some rows of it, `step` of them in each."""
    starts = np.arange(0, len(rows), step)
    ends = np.minimum(starts + step, len(rows)) - 1
    first, last = bars.open[rows[starts], s], bars.close[rows[ends], s]
    times = [bars.times[rows[edges]].tolist() for edges in (starts, ends)]
    return {
        "x": [milliseconds_of(label) for label in times[0]],
        "time": [
            shown_time(a) if a == b else f"{shown_time(a)} to {shown_time(b)}"
            for a, b in zip(*times, strict=True)
        ],
        "open": first.tolist(),
        "high": np.maximum.reduceat(bars.high[rows, s], starts).tolist() if len(rows) else [],
        "low": np.minimum.reduceat(bars.low[rows, s], starts).tolist() if len(rows) else [],
        "close": last.tolist(),
        "width": [0.7 * step * milliseconds_of(bars.bar_ns)] * len(starts),
        "color": np.where(last >= first, UP, DOWN).tolist(),
    }


def mark_columns(bars: BarSeries, s: int, marks: SymbolMarks) -> dict[str, Columns]:
    """Fills, lines of stop and target, and reflections of a symbol, these below the bar before them."""
    fills, lines, seen = marks.fills, marks.levels, marks.reflections
    own = np.flatnonzero(bars.present[:, s])
    closes = bars.close_times[own]
    rows = [own[max(0, int(np.searchsorted(closes, mark.known_at, side="right")) - 1)] for mark in seen]
    codes = [", ".join(dict.fromkeys(str(found["code"]) for found in mark.findings)) for mark in seen]
    return {
        "fills": {
            "x": [milliseconds_of(mark.label) for mark in fills],
            "y": [mark.price for mark in fills],
            "time": [shown_time(mark.label) for mark in fills],
            "told": [
                visible(
                    ", ".join(filter(None, (f"{mark.kind} {mark.direction}", mark.playbook_id, mark.reason)))
                )
                for mark in fills
            ],
            "r": [r_multiple(mark.r) for mark in fills],
            "marker": [fill_marker(mark.kind, mark.direction) for mark in fills],
            "color": [fill_color(mark.r) for mark in fills],
            "chain": [mark.event.own_id for mark in fills],
        },
        "levels": {
            "x0": [milliseconds_of(line.start) for line in lines],
            "x1": [milliseconds_of(line.end) for line in lines],
            "y": [line.price for line in lines],
            "color": [STOP if line.kind == "stop" else TARGET for line in lines],
        },
        "reflections": {
            "x": [milliseconds_of(int(bars.times[row])) for row in rows],
            "y": [float(bars.low[row, s]) for row in rows],
            "time": [shown_time(mark.known_at) for mark in seen],
            "status": [visible(mark.status) for mark in seen],
            "decision": [visible(mark.decision or "not asked") for mark in seen],
            "told": [visible(text or "nothing found") for text in codes],
            "color": [STATUS_COLORS.get(mark.status, OTHER_COLOR) for mark in seen],
            "size": [7 if mark.matters else 4 for mark in seen],
            "chain": [None] * len(seen),
        },
    }


def _excursions(picture: RunPicture) -> Columns:
    trades = picture.episodes
    return {
        "x": [trade.mae_r for trade in trades],
        "y": [trade.mfe_r for trade in trades],
        "told": [visible(f"{trade.symbol} {trade.direction}, {trade.playbook_id}") for trade in trades],
        "r": [r_multiple(trade.r) for trade in trades],
        "color": [fill_color(trade.r) for trade in trades],
        "chain": [0] * len(trades),
    }


def fill_marker(kind: str, direction: str) -> str:
    """An entry points where it is meant to go; what reduces it is a cross."""
    if kind not in ("entry_filled", "add_filled"):
        return "x" if kind == "exit_filled" else "diamond"
    return "triangle" if direction == "long" else "inverted_triangle"


def fill_color(r: float | None) -> str:
    """By what it brought; an entry has brought nothing yet."""
    return NEUTRAL if r is None else UP if r > 0.0 else DOWN


def _fit_range(data: Columns | None, names: Sequence[str], name: str) -> Range1d:
    found = np.concatenate(
        [np.asarray([] if data is None else data[column], dtype=np.float64) for column in names]
    )
    found = found[np.isfinite(found)]
    if not found.size:
        return Range1d(start=0, end=1, name=name)
    low, high = float(found.min()), float(found.max())
    room = 0.06 * (high - low) or 0.06 * abs(high) or 1.0
    return Range1d(start=low - room, end=high + room, name=name)


def _range(values: Sequence[float] | npt.NDArray[np.float64], name: str) -> Range1d:
    if not len(values):
        return Range1d(start=0, end=1, name=name)
    first, last = float(values[0]), float(values[-1])
    return Range1d(start=first, end=max(last, first + 1.0), name=name)


def _over_time(label: str, height: int, across: Range1d, name: str) -> figure:
    return _figure(label, height, name, x_axis_type="datetime", x_range=across, tools=TOOLS)


def _by_name(label: str, height: int, name: str, names: list[str]) -> figure:
    made = _figure(label, height, name, x_range=FactorRange(factors=names), tools="save")
    made.xaxis.major_label_orientation = 0.9
    return made


def _figure(label: str, height: int, name: str, **given: Any) -> figure:
    made = figure(height=height, sizing_mode="stretch_width", name=name, **given)
    made.yaxis.axis_label = label
    made.toolbar.logo, made.toolbar_location = None, "above"
    made.background_fill_alpha = made.border_fill_alpha = 0.0
    made.outline_line_alpha = 0.0
    made.grid.grid_line_alpha = 0.35
    return made


def _tap(*renderers: Any) -> TapTool:
    """What is not selected looks as before."""
    for renderer in renderers:
        renderer.nonselection_glyph = None
    return TapTool(renderers=list(renderers), mode="replace")


def _hover(renderers: Sequence[Any], **payload: str) -> HoverTool:
    return HoverTool(renderers=list(renderers), tooltips=list(payload.items()), point_policy="follow_mouse")
