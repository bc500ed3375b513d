"""RowAssembler: bars as they arrive become rows in label order, and every fault is told exactly once.

Pure: no clock and no I/O. A feed gives it every bar with `take`, then asks with `rows` what is due; the same
bars with the same times give the same items. What it keeps is bounded, whatever a source sends.

What has been told already is kept in a register of bounded size (`SeenOnce`).
"""

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from schemas.settings.live import FeedSettings
from services.feeds.label_grid import NS, LabelGrid
from services.feeds.port import RECALLED_ROWS, BarRow, BlockReason, FeedAnomaly, FeedAnomalyKind
from services.feeds.raw_bar import RawBar, fault
from trading_core.live.growing_bars import Bar

Item = BarRow | FeedAnomaly
Kind = FeedAnomalyKind

MOST_WAITING = 250_000  # bars that wait for their row
MOST_LABELS = 512  # rows that are remembered, so that a repetition is told from a late bar
MOST_STRANGERS = 32  # unknown symbols that are named
_LONGEST_NAME = 64
MOST_KEYS = 8_192


class SeenOnce:
    """A register of keys that forgets the oldest when it is full."""

    def __init__(self, most: int = MOST_KEYS) -> None:
        self._keys: dict[Hashable, None] = {}
        self._most = most

    def first(self, key: Hashable) -> bool:
        """Whether this key comes for the first time; it is remembered."""
        if key in self._keys:
            return False
        if len(self._keys) == self._most:
            del self._keys[next(iter(self._keys))]
        self._keys[key] = None
        return True


@dataclass
class SymbolWatch:
    """One symbol."""

    last: int | None = None  # label of its last bar that was handed over
    missed: int = 0  # bars that did not come since then
    unsaid: int = 0  # bars that did not come while it was stale; its return tells their number
    stale: bool = False  # it has been told so
    quarantine: int = 0  # clean bars without entries that are left
    # labels of bars that wait to be handed over and had a conflict
    doubtful: set[int] = field(default_factory=set)

    def note_bar(self, label: int, quarantine_bars: int) -> BlockReason | None:
        """Note the bar of a row; why the symbol may not enter on it, as far as its own bars tell."""
        self.last, self.missed = label, 0
        reason = BlockReason.CONFLICT if self.quarantine or label in self.doubtful else None
        if label in self.doubtful:
            self.doubtful.remove(label)
            self.quarantine = quarantine_bars
        elif self.quarantine:
            self.quarantine -= 1
        return BlockReason.STALE if self.stale else reason

    def note_conflict(self, label: int, waiting: bool, quarantine_bars: int) -> None:
        """Note a second bar of a label with other values; `waiting`: the first was not handed over yet."""
        if waiting:
            self.doubtful.add(label)
        else:
            self.quarantine = quarantine_bars


class RowAssembler:
    """Rows of some symbols on one time axis."""

    def __init__(
        self,
        symbols: Iterable[str],
        grid: LabelGrid,
        settings: FeedSettings,
        *,
        start: int,
        after: int | None = None,
        most_waiting: int = MOST_WAITING,
    ) -> None:
        """Begin without any bar, at the source time `start`.

        With `after`, the label of the last row that an earlier process took, what lies before is dropped
        silently, unless it is recalled otherwise. Without it, rows that closed until `start` are history,
        unless `end_history` says that less of them is.
        """
        self.symbols = tuple(sorted(symbols))
        self.grid = grid
        self.counts: Counter[Kind] = Counter()
        self._settings = settings
        self._start = start
        self._history_until = start if after is None else None
        self._after = after
        self._most_waiting = most_waiting
        self._grace_ns = int(settings.grace_s * NS)
        self._slack_ns = int(settings.clock_jump_s * NS)
        self._watches = {symbol: SymbolWatch() for symbol in self.symbols}
        self._waiting: dict[int, dict[str, Bar]] = {}
        self._waiting_bars = 0
        self._extra: dict[int, dict[str, Mapping[str, float | None]]] = {}  # of the rows that wait
        self._handed: dict[int, Mapping[str, Bar]] = {}
        self._most_labels = max(2, min(MOST_LABELS, MOST_WAITING // len(self.symbols)))
        self._last = after
        self._shown = SeenOnce()
        self._strangers: set[str] = set()

    def recall(self, rows: Sequence[BarRow], conflicts: Collection[tuple[str, int]]) -> None:
        """Remember the newest rows that an earlier process took, and which conflicts it told."""
        for row in rows[-self._most_labels :]:
            self._remember(row.label, row.bars)
        for symbol, label in conflicts:
            self._shown.first((Kind.CONFLICT, symbol, label))

    def take(self, raw: RawBar, now: int, *, closed: bool = True) -> list[FeedAnomaly]:
        """Keep a bar for its row, or say what is wrong with it.

        It is not `closed` where the source does not show that it is over, whatever the time `now` is there.
        At most one anomaly; none when the bar is kept, or when the same was told before.
        """
        kind, why = self._judge(raw, now, closed)
        if kind is None:
            return []
        self.counts[kind] += 1
        if raw.symbol not in self._watches:
            return self._stranger(raw.symbol[:_LONGEST_NAME])
        if not self._shown.first((kind, raw.symbol, raw.label)):
            return []
        if kind is Kind.CONFLICT:
            waiting = raw.label in self._waiting
            self._watches[raw.symbol].note_conflict(raw.label, waiting, self._settings.quarantine_bars)
        return [FeedAnomaly(kind, raw.symbol, raw.label, why)]

    def rows(self, now: int, *, hold: bool = False, blocked: BlockReason | None = None) -> list[Item]:
        """What is due: rows in label order, each after the anomalies that concern it, then stale symbols.

        On `hold` no row is handed over, because a gap is being filled; the feed has to end this soon, since
        stops run on rows. Where they are `blocked`, no symbol may enter on them.
        """
        items: list[Item] = []
        for label in () if hold else sorted(self._waiting):
            if now < self._due(label):
                break
            items += self._row(label, now, blocked)
        for symbol, watch in self._watches.items():
            if not watch.stale and self._is_old(watch, now):
                items.append(self._stale(symbol, watch))
        return items

    def next_due(self) -> int | None:
        """Source time at which the first waiting row goes; None when none waits."""
        return self._due(min(self._waiting)) if self._waiting else None

    @property
    def waiting(self) -> int:
        """Bars that wait for their row."""
        return self._waiting_bars

    @property
    def newest(self) -> int | None:
        """Label of the newest bar that was kept; None before the first."""
        return max(self._waiting, default=self._last)

    def repeats(self, raw: RawBar) -> bool:
        """Whether a bar of a source that is read again is no news: as it came before, or long gone."""
        row = self._waiting.get(raw.label) or self._handed.get(raw.label)
        if row is None:
            oldest = next(iter(self._handed), None)
            return oldest is not None and raw.label < oldest
        is_old = self._last is not None and raw.label <= self._last - RECALLED_ROWS * self.grid.bar_ns
        return row.get(raw.symbol) == raw.bar or (is_old and raw.symbol in row)

    def end_history(self, newest: int | None) -> None:
        """Let no row after the label `newest` be history, however old it is; None: no row that is to come."""
        if self._history_until is not None:
            known = self._history_until
            self._history_until = None if newest is None else min(known, self.grid.close(newest))

    def last_labels(self) -> dict[str, int]:
        """The label of each symbol's last bar that was handed over."""
        return {symbol: watch.last for symbol, watch in self._watches.items() if watch.last is not None}

    def _judge(self, raw: RawBar, now: int, closed: bool) -> tuple[Kind | None, dict[str, Any]]:
        if raw.symbol not in self._watches:
            return Kind.INVALID, {}
        if not self.grid.has(raw.label):
            return Kind.INVALID, {"reason": "label off the grid", "timeframe": self.grid.timeframe}
        if self._after is not None and raw.label <= self._after:
            taken = self._handed.get(raw.label, {}).get(raw.symbol)
            if taken is None or taken == raw.bar:
                return None, {}
        if not closed or self.grid.close(raw.label) > now + self._slack_ns:
            return Kind.UNCLOSED, {}
        problem = fault(raw.bar)
        if problem is not None:
            return Kind.INVALID, {"reason": problem}
        return self._place(raw)

    def _stranger(self, symbol: str) -> list[FeedAnomaly]:
        """A symbol that was not asked for: told once, and of many only the first."""
        if symbol in self._strangers or len(self._strangers) > MOST_STRANGERS:
            return []
        self._strangers.add(symbol)
        reason = "unknown symbol" if len(self._strangers) <= MOST_STRANGERS else "many unknown symbols"
        return [FeedAnomaly(Kind.INVALID, symbol, None, {"reason": reason})]

    def _place(self, raw: RawBar) -> tuple[Kind | None, dict[str, Any]]:
        rows = self._waiting if raw.label in self._waiting else self._handed
        first = rows.get(raw.label, {}).get(raw.symbol)
        if first is not None:
            if first == raw.bar:
                return Kind.DUPLICATE, {}
            return Kind.CONFLICT, {"kept": list(first), "dropped": list(raw.bar)}
        if self._last is not None and raw.label <= self._last:
            return Kind.LATE, {"bar": list(raw.bar), "newest": self._last}
        if self._waiting_bars >= self._most_waiting:
            return Kind.INVALID, {"reason": f"{self._most_waiting} bars wait already"}
        self._waiting.setdefault(raw.label, {})[raw.symbol] = raw.bar
        if raw.extra:
            self._extra.setdefault(raw.label, {})[raw.symbol] = raw.extra
        self._waiting_bars += 1
        return None, {}

    def _due(self, label: int) -> int:
        """When a waiting row may go: all came or were waited for, and so it was with the label before."""
        ready = self.grid.close(label) + self._grace_ns
        if len(self._waiting[label]) < len(self.symbols):
            return ready
        follows = self._last is not None and label - self._last <= self.grid.bar_ns
        return self.grid.close(label) - self._slack_ns if follows else ready - self.grid.bar_ns

    def _row(self, label: int, now: int, blocked: BlockReason | None) -> list[Item]:
        bars = self._waiting.pop(label)
        self._waiting_bars -= len(bars)
        history = self._history_until is not None and self.grid.close(label) <= self._history_until
        items: list[Item] = [] if history else [*self._gaps(label), *self._absent(label, bars)]
        late = now - self.grid.close(label) > self._settings.max_row_age_bars * self.grid.bar_ns
        whole = BlockReason.TOO_LATE if late else blocked
        reasons: dict[str, str] = {}
        for symbol, watch in self._watches.items():
            reason: BlockReason | None = BlockReason.STALE if watch.stale else BlockReason.MISSING
            if symbol in bars:
                items += self._fresh(symbol, watch, label, now)
                reason = watch.note_bar(label, self._settings.quarantine_bars)
            if whole or reason:
                reasons[symbol] = str(whole or reason)
        self._last = label
        self._remember(label, bars)
        extra = self._extra.pop(label, {})
        in_order = {symbol: bars[symbol] for symbol in self.symbols if symbol in bars}
        return [*items, BarRow(label, in_order, {} if history else reasons, history, extra)]

    def _gaps(self, label: int) -> list[FeedAnomaly]:
        skipped = 0 if self._last is None else self.grid.count_between(self._last, label)
        if not skipped or self._last is None:
            return []
        first, last = self._last + self.grid.bar_ns, label - self.grid.bar_ns
        return [
            item
            for symbol, watch in self._watches.items()
            for item in self._note_missing(symbol, watch, first, {"bars": skipped, "to": last})
        ]

    def _absent(self, label: int, bars: Mapping[str, Bar]) -> list[FeedAnomaly]:
        return [
            item
            for symbol, watch in self._watches.items()
            if symbol not in bars
            for item in self._note_missing(symbol, watch, label, {"bars": 1, "to": label})
        ]

    def _note_missing(
        self, symbol: str, watch: SymbolWatch, label: int, detail: dict[str, Any]
    ) -> list[FeedAnomaly]:
        """Bars that did not come; a stale symbol has been told already, and its return tells their number."""
        watch.missed += detail["bars"]
        self.counts[Kind.MISSING] += detail["bars"]
        if watch.stale:
            watch.unsaid += detail["bars"]
            return []
        items = [FeedAnomaly(Kind.MISSING, symbol, label, detail)]
        if watch.missed >= self._settings.stale_after_bars:
            items.append(self._stale(symbol, watch))
        return items

    def _stale(self, symbol: str, watch: SymbolWatch) -> FeedAnomaly:
        watch.stale = True
        self.counts[Kind.STALE] += 1
        return FeedAnomaly(Kind.STALE, symbol, watch.last, {"after_bars": self._settings.stale_after_bars})

    def _fresh(self, symbol: str, watch: SymbolWatch, label: int, now: int) -> list[FeedAnomaly]:
        """The end of a stale stretch; a bar that is old itself does not end it."""
        if not watch.stale or (self.grid.continuous and now >= self._old_at(self.grid.close(label))):
            return []
        detail = {"missed": watch.unsaid}
        watch.stale, watch.unsaid = False, 0
        self.counts[Kind.FRESH] += 1
        return [FeedAnomaly(Kind.FRESH, symbol, label, detail)]

    def _is_old(self, watch: SymbolWatch, now: int) -> bool:
        """Whether the watchdog of a symbol goes off; a market with pauses is watched by its rows alone."""
        if not self.grid.continuous:
            return False
        return now >= self._old_at(self._start if watch.last is None else self.grid.close(watch.last))

    def _old_at(self, close: int) -> int:
        return close + self._settings.stale_after_bars * self.grid.bar_ns + self._grace_ns

    def _remember(self, label: int, bars: Mapping[str, Bar]) -> None:
        self._handed[label] = bars
        if len(self._handed) > self._most_labels:
            del self._handed[next(iter(self._handed))]
