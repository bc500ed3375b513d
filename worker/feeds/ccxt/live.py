"""LiveBars: asks an exchange for every bar that is over, and gives the answers to the assembler.

One look never waits: requests run beside the feed, and answers lie ready for the next look. Every bar is
given once, and again where the exchange says it otherwise, so what the assembler calls a duplicate or a
conflict is the exchange's doing.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from schemas.errors import FeedError
from schemas.settings.live import FeedSettings
from services.feeds.assembler import Item, RowAssembler, SeenOnce
from services.feeds.label_grid import NS
from services.feeds.port import BarRow, FeedAnomaly, FeedAnomalyKind
from services.feeds.raw_bar import RawBar
from trading_core.live.growing_bars import Bar
from worker.feeds.ccxt.exchange import PublicExchange
from worker.feeds.ccxt.source_clock import SourceClock, backoff_s

MOST_GIVEN = 1_024  # bars of a symbol that are remembered when their rows have gone
AT_ONCE = 4  # requests; more would wait in ccxt's queue while their deadlines run
RECHECKED_BARS = 5  # asked for again with each new bar: one that came late or was corrected is told
SHORTEST_WAIT_S, LONGEST_WAIT_S = 0.02, 1.0


class Answer(NamedTuple):
    """What an exchange said of a symbol; a bar that ends after `asked_at` (ns) may lack its end."""

    symbol: str
    bars: list[RawBar]
    asked_at: int
    in_doubt: bool  # whether that was the time at the exchange


@dataclass
class _Line:
    """The bars of one symbol that were given, and its requests, of which one runs at a time."""

    given: dict[int, tuple[Bar, ...]] = field(default_factory=dict)  # by label
    wanted: int = 0  # label of the bar for whose sake it is asked
    attempts: int = 0  # for its sake in a row
    not_before: int = 0  # steady ns of the next request
    failing: bool = False  # the last one failed
    task: asyncio.Task[None] | None = None


class LiveBars:
    """The bars of one feed from a label on.

    `span` is the first label that may be asked for, and the first without a row; `wake` is set when something
    came for the next look.
    """

    def __init__(
        self,
        exchange: PublicExchange,
        assembler: RowAssembler,
        settings: FeedSettings,
        clock: SourceClock,
        span: tuple[int, int],
        wake: asyncio.Event,
    ) -> None:
        self._exchange, self._assembler, self._clock, self._wake = exchange, assembler, clock, wake
        self._grid, self._most_s = assembler.grid, settings.exchange.backoff_max_s
        self._settle_ns = int(settings.exchange.settle_s * NS)
        self._grace_ns = int(settings.grace_s * NS)
        self._slack_ns = int(settings.clock_jump_s * NS)
        self._first, self._row = span[0], span[1] - self._grid.bar_ns
        self._lines = {symbol: _Line() for symbol in assembler.symbols}
        self._room, self._pause_until = asyncio.Semaphore(AT_ONCE), 0
        self._came: list[FeedAnomaly | Answer] = []
        self._away: set[str | None] = set()  # symbols that are refused; None: nothing is answered at all
        self._open = SeenOnce()
        self._hole_since: int | None = None

    def look(self) -> list[Item]:
        """Everything that can be handed over now."""
        items: list[Item] = [*self._clock.look()]
        came, self._came = self._came, []
        for answer in came:
            items += self._note_answer(answer) if isinstance(answer, Answer) else [answer]
        missing = self._missing()
        for symbol, label in missing.items():
            self._ask(symbol, label)
        return items + self.rows(hold=self._holds(missing.values()))

    def rows(self, *, hold: bool = False) -> list[Item]:
        """The rows that are due."""
        items = self._assembler.rows(self._clock.now(), hold=hold, blocked=self._clock.blocked)
        self._row = max((item.label for item in items if isinstance(item, BarRow)), default=self._row)
        oldest = self._row - RECHECKED_BARS * self._grid.bar_ns
        for line in self._lines.values():
            if len(line.given) > MOST_GIVEN:
                line.given = {label: reply for label, reply in line.given.items() if label >= oldest}
        return items

    def take(self, bars: Iterable[RawBar]) -> list[FeedAnomaly]:
        """Give bars to the assembler; none of the future is a bar yet, and it is told once."""
        now, shown = self._clock.now(), list[FeedAnomaly]()
        for raw in bars:
            if raw.label <= now + self._slack_ns:
                given = self._lines[raw.symbol].given
                given[raw.label] = (*given.get(raw.label, ()), raw.bar)
            elif not self._open.first((raw.symbol, raw.label)):
                continue
            shown += self._assembler.take(raw, now)
        return shown

    def newest_settled(self, at: int | None = None) -> int:
        """Label of the newest bar that is over and has settled, now or at a time at the exchange (ns)."""
        reached = (self._clock.now() if at is None else at) - self._settle_ns
        return reached - reached % self._grid.bar_ns - self._grid.bar_ns

    def pause_s(self) -> float:
        """Seconds until the next look is worth it, if nothing wakes earlier."""
        now, due = self._clock.now(), self._assembler.next_due()
        next_settles = self.newest_settled() + 2 * self._grid.bar_ns + self._settle_ns
        until = due if due is not None and now < due < next_settles else next_settles
        return max(SHORTEST_WAIT_S, min(LONGEST_WAIT_S, (until - now) / NS))

    async def stop(self) -> None:
        """End what runs beside the feed."""
        running = [self._clock.task, *(line.task for line in self._lines.values())]
        tasks = [task for task in running if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _ask(self, symbol: str, wanted: int) -> None:
        """Send a request for the bars from `wanted` on, unless one of the symbol runs or has to wait.

        The first one asks for the bars before as well; a refill goes straight on.
        """
        line, bar_ns = self._lines[symbol], self._grid.bar_ns
        if line.task is not None:
            return
        if wanted != line.wanted and not line.failing:
            line.attempts = line.not_before = 0
        line.wanted = wanted
        if self._clock.steady() >= max(self._pause_until, line.not_before):
            before = 0 if line.attempts else min(RECHECKED_BARS, (wanted - self._first) // bar_ns)
            line.task = asyncio.create_task(self._request(line, symbol, wanted - before * bar_ns))

    async def _request(self, line: _Line, symbol: str, since: int) -> None:
        asked_at, in_doubt = self._clock.now(), self._clock.jumped
        limit = min((asked_at - since) // self._grid.bar_ns + 1, self._exchange.page_bars)
        try:
            async with self._room:
                bars = await self._exchange.bars(symbol, self._grid.timeframe, since, limit)
            line.failing = False
            self._postpone(line, None)
            for away in (symbol, None):
                if away in self._away:
                    self._away.remove(away)
                    self._clock.check_at = 0
                    self._tell(FeedAnomalyKind.RECONNECTED, away)
            self._came.append(Answer(symbol, bars, asked_at, in_doubt))
        except FeedError as error:
            self._note_failure(line, symbol, error)
        finally:
            line.task = None
            self._wake.set()

    def _note_failure(self, line: _Line, symbol: str, error: FeedError) -> None:
        """Told once; a symbol that is refused by itself, since the others go on and stops are seen."""
        line.failing = True
        self._postpone(line, error.context["retry_after_s"])
        reason, pause = error.context["failure"], error.context.get("cut_short")
        if reason == "rate_limited":
            self._pause_until = max(self._pause_until, line.not_before)
        away = None if error.retryable else symbol
        if away not in self._away or pause is not None:
            self._away.add(away)
            self._tell(FeedAnomalyKind.DISCONNECTED, away, reason=reason, pause=pause)

    def _postpone(self, line: _Line, asked_s: float | None) -> None:
        """Wait before the bar of the same label is asked for again, longer each time."""
        line.attempts += 1
        line.not_before = self._clock.steady() + int(backoff_s(line.attempts, self._most_s, asked_s) * NS)

    def _tell(self, kind: FeedAnomalyKind, symbol: str | None, **answer: str | None) -> None:
        detail = {"channel": "rest"} | {name: word for name, word in answer.items() if word}
        self._came.append(FeedAnomaly(kind, symbol, None, detail))

    def _note_answer(self, answer: Answer) -> list[FeedAnomaly]:
        """Bars of one symbol that are new or others than before; those of a gap are a refill."""
        symbol, given, now = answer.symbol, self._lines[answer.symbol].given, self._clock.now()
        latest, over = now + self._slack_ns, self.newest_settled(min(answer.asked_at, now))
        newest = max((raw.label for raw in answer.bars if raw.label <= latest), default=0)
        items = self._clock.note_newest(newest, self._grid.bar_ns)
        if answer.in_doubt or self._clock.jumped:  # the newest may be one that runs
            over = min(over, newest - 1)
        news = [
            raw
            for raw in answer.bars
            if not over < raw.label <= latest and raw.bar not in given.get(raw.label, ())
        ]
        gap = range(self._row + self._grid.bar_ns, self.newest_settled(), self._grid.bar_ns)
        filled = {raw.label for raw in news if raw.label in gap} - given.keys()
        return items + self.take(news) + refill(symbol, filled)

    def _missing(self) -> dict[str, int]:
        """The first label of each symbol that is over, was not given, and whose row has not gone."""
        found, newest = {}, self.newest_settled()
        for symbol, line in self._lines.items():
            label = self._row + self._grid.bar_ns
            while label in line.given:
                label += self._grid.bar_ns
            if label <= newest:
                found[symbol] = label
        return found

    def _holds(self, missing: Iterable[int]) -> bool:
        """Whether rows wait for a refill: only for gaps of several bars, and no longer than `grace_s`."""
        now, steady = self._clock.now(), self._clock.steady()
        if self._grid.close(min(missing, default=now)) + self._grid.bar_ns > now:
            self._hole_since = None
            return False
        if self._hole_since is None:
            self._hole_since = steady
        return steady - self._hole_since < self._grace_ns


def refill(symbol: str, labels: set[int]) -> list[FeedAnomaly]:
    """Bars that came when newer ones were over; none where there are no labels."""
    if not labels:
        return []
    detail = {"bars": len(labels), "to": max(labels)}
    return [FeedAnomaly(FeedAnomalyKind.REFILLED, symbol, min(labels), detail)]
