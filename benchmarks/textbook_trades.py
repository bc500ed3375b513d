"""Trades of textbook strategies here and by the textbook: `python -m benchmarks.textbook_trades`.

The textbook is a loop that holds no policy and asks nobody: it buys at the open after the close at which the
entry is true, and sells at the open after the close at which the exit is, or at its stop. So backtesting.py
trades it too. Both pay no costs. Each of its trades that has no entry here at the same bar is listed with
the reason.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from schemas.playbook import PlaybookDefinition
from schemas.settings import EnvelopeSettings, ExecutionSettings, ReflectionSettings, Settings
from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter
from services.playbooks.loader import load_playbooks
from trading_core.bars import BarSeries
from trading_core.rules.columns import RuleColumns
from worker.feeds.sample_data import load_embedded_bars
from worker.runs.backtest import run_backtest

TEXTBOOK = Path("textbook")  # the folder of ours by its name
NAMES = ("bollinger", "bollinger_target", "donchian", "dual_average", "rsi2")
TARGET = Path(__file__).parent / "textbook" / "bollinger_target.toml"
SYMBOL, START, END = "AAPL", "2003-01-01", "2010-12-31"
FREE = ExecutionSettings(fee_bps=0.0, slippage_bps=0.0)
DEFAULT_COOLDOWN: int = EnvelopeSettings().cooldown_bars


@dataclass(frozen=True)
class Held:
    """One trade by rows: the bar of the entry, and that of the exit, the number of bars while it is open."""

    entry: int
    exit: int


def textbook_trades(bars: BarSeries, playbook: PlaybookDefinition) -> list[Held]:
    """Long trades of a playbook on its first symbol, straight from its rules, without a policy."""
    rules, columns, rows = playbook.rules["long"], RuleColumns(bars), bars.shape[0]
    enters, stops = columns.boolean(rules.setup, 0) == 1, columns.number(rules.stop, 0)
    targets = columns.number(rules.target, 0)
    leaves = np.zeros(rows, np.bool_)
    if rules.exit is not None:
        leaves = columns.boolean(rules.exit, 0) == 1
    found, signal, entry = [], -1, -1
    for row in range(rows):
        if entry < 0 and signal >= 0:
            entry, stop, target = row, stops[signal], targets[signal]
            is_leaving = False
        if entry >= 0 and (is_leaving or bars.low[row, 0] <= stop or bars.high[row, 0] >= target):
            found.append(Held(entry, row))
            entry, is_leaving = -1, False
        signal = row if entry < 0 and enters[row] else -1
        is_leaving = entry >= 0 and bool(leaves[row])
    return [*found, *([Held(entry, rows)] if entry >= 0 else [])]


@dataclass(frozen=True)
class OwnRun:
    """What a run made of the same signals, by rows; `refused` says why, `first_policy` since when."""

    trades: list[Held]
    refused: dict[int, str]
    first_policy: int


def own_run(bars: BarSeries, playbook: PlaybookDefinition, settings: Settings) -> OwnRun:
    """A backtest of one playbook, read from its journal."""
    sink = MemorySink()
    asyncio.run(run_backtest(settings, bars, JournalWriter(sink), definitions=[playbook]))
    row_of = {int(label): row for row, label in enumerate(bars.times)}
    shown = [(row.kind, json.loads(row.payload), row.ts_event) for row in sink.rows]

    def rows_of(kind: str) -> list[int]:
        return [row_of[payload["bar_label"]] for name, payload, _ in shown if name == kind]

    entries, exits = rows_of("entry_filled"), rows_of("exit_filled")
    exits += [bars.shape[0]] * (len(entries) - len(exits))
    refused = {
        row_of[payload["bar_label"]]: payload["reason"]
        for name, payload, _ in shown
        if name == "order_refused"
    }
    frozen = [int(np.searchsorted(bars.close_times, at)) for name, _, at in shown if name == "policy_frozen"]
    trades = [Held(*rows) for rows in zip(entries, exits, strict=True)]
    return OwnRun(trades, refused, min(frozen, default=bars.shape[0]))


def missed(book: list[Held], own: OwnRun, cooldown: int) -> Iterator[tuple[Held, str]]:
    """Trades of the textbook without an entry here at the same bar, each with its reason."""
    entered = {trade.entry for trade in own.trades}
    for trade in book:
        signal = trade.entry - 1
        if trade.entry in entered:
            continue
        if signal <= own.first_policy:
            yield trade, "warming up"
        elif any(held.entry <= signal <= held.exit - 1 for held in own.trades):
            yield trade, "in a position"
        elif any(held.exit == signal for held in own.trades):
            yield trade, "at the bar of an exit"
        elif any(held.exit <= signal <= held.exit + cooldown for held in own.trades):
            yield trade, "cooldown"
        elif signal in own.refused:
            yield trade, f"refused: {own.refused[signal]}"
        else:
            yield trade, "no policy in force"


def compare(bars: BarSeries, playbook: PlaybookDefinition, mode: Any, cooldown: int) -> dict[str, Any]:
    """Counts of one strategy under one setting, and the missed trades by reason."""
    settings = Settings(
        execution=FREE,
        reflection=ReflectionSettings(mode=mode),
        envelope=EnvelopeSettings(cooldown_bars=cooldown),
    )
    book, own = textbook_trades(bars, playbook), own_run(bars, playbook, settings)
    lost = list(missed(book, own, cooldown))
    reasons = Counter(reason for _, reason in lost)
    return {
        "playbook": playbook.id, "reflection": mode, "cooldown": cooldown, "textbook": len(book),
        "here": len(own.trades), "same entry": len(book) - len(lost),
        "same entry and exit": len(set(book) & set(own.trades)), "missed": dict(reasons),
        "bars": [(str(bars.times[trade.entry].astype("datetime64[ns]"))[:10], why) for trade, why in lost],
    }  # fmt: skip


def textbook() -> list[PlaybookDefinition]:
    """The strategies that are compared, by name."""
    found = [*load_playbooks(TEXTBOOK), *load_playbooks(TARGET)]
    return sorted((book for book in found if book.id in NAMES), key=lambda book: book.id)


def main() -> None:
    """Print a line for each strategy and setting."""
    bars = load_embedded_bars([SYMBOL], start=START, end=END)
    for playbook in textbook():
        for mode in ("deterministic", "off"):
            for cooldown in (DEFAULT_COOLDOWN, 0):
                print(json.dumps(compare(bars, playbook, mode, cooldown)))


if __name__ == "__main__":
    main()
