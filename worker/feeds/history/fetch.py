"""History of an exchange into a bar file: page by page, resumable, examined, and read again in places.

Public data only. The bars are those that `--data` then reads.
"""

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from schemas.errors import ConfigError, DataError
from schemas.settings.live import ExchangeSettings
from schemas.timeframes import TIMEFRAME_SECONDS
from trading_core.spacing import NS, show_label
from worker.feeds.ccxt.history import SLACK_NS, Patience, pages
from worker.feeds.history.check import MOST_LISTED, SymbolFindings, examine
from worker.feeds.history.fetch_partial import PartialFile, check_target, write_bars
from worker.feeds.history.public_source import FORMATS, HistorySource, open_source
from worker.feeds.time_range import range_ns

REREAD_PAGES, REREAD_BARS = 3, 50
CLOSED_DAYS = 4  # in a row, as over Easter, are no gap of a source of sessions


@dataclass(frozen=True)
class FetchRequest:
    """What to fetch, as the operator said it."""

    exchange: str  # name in ccxt, `yahoo` or `stooq`
    symbols: tuple[str, ...]  # as ccxt writes them
    timeframe: str
    start: str  # first label, UTC; a date is its first instant
    # last label, UTC, inclusive; a date is its whole day. None: up to the last bar that is over.
    end: str | None
    out: Path  # the file to write
    replace: bool = False  # whether that file may be there already


@dataclass(frozen=True)
class FetchShell:
    """Where a fetch runs."""

    settings: ExchangeSettings  # how the exchange is reached
    patience: Patience  # with failures
    progress: Callable[[int, int], None]  # bars of time that are done, and all
    wall: Callable[[], int] = time.time_ns  # ns since 1970, for an exchange that does not tell its time


async def fetch(request: FetchRequest, shell: FetchShell) -> dict[str, Any]:
    """Fetch, examine, write; what was found as plain data, `ok` when there is nothing to mend.

    Raises:
        ConfigError: the exchange, timeframe, range or file cannot be.
        DataError: an unknown symbol, no bars, or a disk that is full.
        FeedError: the exchange does not answer; what came is kept for the next attempt.
    """
    check_target(request.out, replace=request.replace)
    start, end = range_ns(request.start, request.end)
    exchange = open_source(request.exchange, shell.settings)
    try:
        await shell.patience.ask(exchange.load)
        exchange.check(request.symbols, request.timeframe)
        step = TIMEFRAME_SECONDS[request.timeframe] * NS
        reply, unsure = await shell.patience.ask(exchange.clock_ns), int(shell.settings.settle_s * NS)
        ahead = 0 if reply is None else reply - shell.wall()
        if reply is None:  # ours may be ahead, and what is over by it may be running
            unsure += SLACK_NS

        def now() -> int:
            return shell.wall() + ahead

        first, last = _labels(now() - unsure, step, max(start or 0, 0), end)
        identity: dict[str, Any] = {"exchange": request.exchange, "symbols": list(request.symbols)}
        identity |= {"timeframe": request.timeframe, "first": first, "end": end}
        with PartialFile(request.out, identity) as partial:
            await _pages(exchange, request, shell, partial, first, last, now)
            found = _examine(request, partial, first, last)
            differing = await _reread(exchange, request, shell, found)
            write_bars(request.out, {symbol: findings.bars for symbol, findings in found.items()})
            resumed = partial.resumed
            partial.remove()
    finally:
        await exchange.close()
    return _document(request, found, differing, first, last, resumed)


def _labels(now: int, step: int, start: int, end: int | None) -> tuple[int, int]:
    newest = now - now % step - step
    first = -(-start // step) * step
    last = newest if end is None else min(newest, end - end % step)
    if first > last:
        raise ConfigError(
            f"--from {show_label(start)} up to {show_label(last if end is None else end)}: no bar of this "
            f"range is over yet; the newest that is over begins at {show_label(newest)}"
        )
    return first, last


async def _pages(
    exchange: HistorySource,
    request: FetchRequest,
    shell: FetchShell,
    partial: PartialFile,
    first: int,
    last: int,
    now: Callable[[], int],
) -> None:
    step = TIMEFRAME_SECONDS[request.timeframe] * NS
    each = (last - first) // step + 1
    total = each * len(request.symbols)
    for number, symbol in enumerate(request.symbols):
        since = partial.next_label.get(symbol, first)
        shell.progress(number * each + (min(since, last + step) - first) // step, total)
        async for page in pages(exchange, symbol, request.timeframe, since, last, shell.patience, now):
            partial.add(symbol, page)
            reached = min(page.next_label, last + step)
            shell.progress(number * each + (reached - first) // step, total)
        if not any(first <= candle.label <= last for candle in partial.bars.get(symbol, [])):
            partial.remove()
            raise DataError(
                f"{request.exchange} has no bars of {symbol} from {show_label(first)} to {show_label(last)}: "
                "choose another range, or leave the symbol out",
                symbol=symbol,
            )


def _examine(request: FetchRequest, partial: PartialFile, first: int, last: int) -> dict[str, SymbolFindings]:
    found = {
        symbol: examine(
            [candle for candle in partial.bars[symbol] if candle.label <= last],
            request.timeframe,
            requested=(first, last),
            future=partial.future.get(symbol, ()),
        )
        for symbol in request.symbols
    }
    for symbol, findings in found.items():
        if not findings.bars:
            partial.remove()
            off_grid = ((label, "its label is no multiple of the timeframe") for label in findings.off_grid)
            label, why = next(iter([*findings.invalid, *off_grid]))
            raise DataError(
                f"{request.exchange}: no bar of {symbol} can be used: at {show_label(label)} {why}; choose "
                "another range, or leave the symbol out",
                symbol=symbol,
            )
    for findings in found.values() if request.exchange in FORMATS else ():
        findings.gaps = [gap for gap in findings.gaps if gap[2] > CLOSED_DAYS]
        findings.requested = len(findings.bars) + sum(count for _, _, count in findings.gaps)
    return found


async def _reread(
    exchange: HistorySource, request: FetchRequest, shell: FetchShell, found: dict[str, SymbolFindings]
) -> dict[str, list[int]]:
    """Labels whose bars are others when they are asked for again, in some places of each symbol."""
    differing: dict[str, list[int]] = {}
    for symbol, findings in found.items():
        labels = list(findings.bars)
        for since in _places(labels):
            again = partial(exchange.bars, symbol, request.timeframe, since, REREAD_BARS)
            for candle in await shell.patience.ask(again):
                first_said = findings.bars.get(candle.label)
                if first_said is not None and first_said != candle.bar:
                    differing.setdefault(symbol, []).append(candle.label)
    return {symbol: sorted(set(labels)) for symbol, labels in differing.items()}


def _places(labels: list[int]) -> list[int]:
    last = max(0, len(labels) - REREAD_BARS)
    return [labels[at] for at in sorted({k * last // (REREAD_PAGES - 1) for k in range(REREAD_PAGES)})]


def _document(
    request: FetchRequest,
    found: dict[str, SymbolFindings],
    differing: dict[str, list[int]],
    first: int,
    last: int,
    resumed: int,
) -> dict[str, Any]:
    return {
        "ok": not differing and not any(findings.problems for findings in found.values()),
        "file": str(request.out),
        "sha256": hashlib.sha256(request.out.read_bytes()).hexdigest(),
        "exchange": request.exchange,
        "timeframe": request.timeframe,
        "from": show_label(first),
        "to": show_label(last),
        "bars": sum(len(findings.bars) for findings in found.values()),
        "resumed_bars": resumed,
        "symbols": {symbol: findings.document() for symbol, findings in sorted(found.items())},
        "changed_when_read_again": {
            symbol: [show_label(label) for label in labels[:MOST_LISTED]]
            for symbol, labels in differing.items()
        },
    }
