"""What a trader reads first of a run: its figures, as far as contamination allows them, and by name."""

from collections.abc import Iterable, Sequence
from typing import Any

from rich.table import Table

from services.model_calls.quoting import count_noun
from worker.pages.figures import DASH, number, percent, r_multiple

Document = dict[str, Any]
Rows = Iterable[tuple[str, str]]
GROUPS = {"by_playbook": "By playbook", "by_symbol": "By symbol", "by_exit": "By reason of exit"}
MORE_GROUPS = GROUPS | {"by_regime": "By regime"}
COLUMNS = ("trades", "won %", "mean R", "total R", "profit factor", "hold bars")


def table_of(rows: Rows) -> Table:
    """Names and what is said of each, without a frame."""
    table = Table(show_header=False, box=None, padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(name, value)
    return table


def performance_parts(document: Document, *, full: bool = False) -> Iterable[tuple[str, Rows]]:
    """The headline first; what models may have read about stands below it and says so."""
    found, whole = document["contamination"], document["performance"]
    rows = _whole(whole, document["open_positions"], full=full)
    if found["label"] in ("clean", "anonymised"):
        told = [] if found["reason"] is None else [("questions", found["reason"])]
        yield "Performance", [*rows, *told]
        return
    if document["headline"] is None:
        yield "Performance: no headline", [("why", found["reason"])]
    else:
        cutoff = found["cutoff"]
        yield f"Performance after {cutoff}", _part(found["after"], found["bars_after"])
        told = [("why apart", found["reason"]), *_part(found["before"], found["bars_before"])]
        yield f"To {cutoff}, contaminated: never a headline", told
    yield "Whole run, contaminated: never a headline", rows


def group_tables(document: Document, *, full: bool = False) -> Iterable[tuple[str, Table]]:
    """Titles with a table for each way in which the trades are told apart; none without trades."""
    whole = document["contamination"]["label"] in ("clean", "anonymised")
    for key, title in (MORE_GROUPS if full else GROUPS).items():
        if groups := document["performance"][key]:
            yield title if whole else f"{title}, whole run, contaminated", _group_table(groups)


def _group_table(groups: Sequence[Document]) -> Table:
    """Numbers to the right, in columns as narrow as they allow; a heading is folded between its words."""
    cells = [_cells(group) for group in groups]
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("", overflow="fold", min_width=12)
    for number_of, name in enumerate(COLUMNS):
        widest = max(*(len(row[number_of]) for row in cells), *map(len, name.split()))
        table.add_column(name, justify="right", width=widest)
    for group, row in zip(groups, cells, strict=True):
        table.add_row(group["name"], *row)
    return table


def _cells(group: Document) -> tuple[str, ...]:
    return (
        number(group["trades"]),
        number(100 * group["win_rate"], 1),
        _signed(group["expectancy_r"]),
        _signed(group["total_r"], 1),
        number(group["profit_factor"]),
        number(group["average_hold_bars"], 1),
    )


def _signed(value: float | None, digits: int = 2) -> str:
    return DASH if value is None else f"{value:+,.{digits}f}"


def _part(figures: Document, bars: int) -> Rows:
    yield "return", f"{percent(figures['total_return'])}   over {count_noun(bars, 'bar')}"
    fall = percent(figures["max_drawdown"])
    yield "Sharpe", f"{number(figures['sharpe'])}   largest drawdown {fall}"
    yield "expectancy", f"{r_multiple(figures['expectancy_r'])} a trade after costs"
    yield "trades", f"{figures['trades']:,}   won {percent(figures['win_rate'])}"


def _whole(told: Document, open_positions: Sequence[Document], *, full: bool) -> Rows:
    total, hold = percent(told["total_return"]), percent(told["buy_and_hold_return"])
    yield "return", f"{total}   buy and hold {hold}   CAGR {percent(told['cagr'])}"
    interval = told["sharpe_interval"]
    sure = "" if interval is None else f" (95 %: {number(interval[0])} to {number(interval[1])})"
    yield "Sharpe", f"{number(told['sharpe'])}{sure}   Sortino {number(told['sortino'])}"
    fall, days = percent(told["max_drawdown"]), number(told["drawdown_days"], 0)
    yield "drawdown", f"largest {fall}   longest {days} days"
    expectancy, factor = r_multiple(told["expectancy_r"]), number(told["profit_factor"])
    yield "expectancy", f"{expectancy} a trade after costs   profit factor {factor}"
    won = percent(told["win_rate"])
    yield "trades", f"{told['trades']:,}   won {won}   still open {len(open_positions)}"
    held = number(told["average_hold_bars"], 1)
    yield "exposure", f"in the market {percent(told['exposure'])} of bars   mean hold {held} bars"
    alpha, t = percent(told["alpha"]), number(told["alpha_t"])
    yield "to buy and hold", f"beta {number(told['beta'])}   alpha {alpha} a year (t {t})"
    even = number(told["break_even_cost_bps"], 1)
    yield "costs", f"{number(float(told['fees']))} in fees and carry   break-even at {even} bps a side"
    if full:
        yield "volatility", f"{percent(told['volatility'])} a year   Calmar {number(told['calmar'])}"
        best, worst = r_multiple(told["best_r"]), r_multiple(told["worst_r"])
        yield "best trade", f"{best}   worst {worst}   payoff {number(told['payoff'])}"
        yield "turnover", f"{number(told['turnover'])} times the equity a year"
