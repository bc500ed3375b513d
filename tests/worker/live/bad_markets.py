"""Paper runs in virtual time on the real feeds over a source that misbehaves, and what they journal."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any

from schemas.settings import MemorySettings, PolicyLoopSettings, ReflectionSettings, Settings
from services.feeds.port import CONFLICTING, BarRow, FeedAnomaly
from services.feeds.port import FeedAnomalyKind as Kind
from services.journal.chain import JournalRow
from tests.worker.feeds.planted import Key
from tests.worker.live.memory_store import MemoryStore
from tests.worker.live.null_monitor import NullMonitor
from tests.worker.live.paper_runs import Item, RunningFeed
from tests.worker.live.virtual_time import run_virtually
from tests.worker.replays import paper_replay
from trading_core.bars import BarSeries
from worker.feeds.sample_data.worlds import make_world
from worker.live.process import PaperOutcome, PaperProcess
from worker.live.process_inputs import ProcessInputs

NS = 1_000_000_000
BAR_S = 60.0
ABOUT_THE_FEED = ("feed_anomaly", "entries_blocked")
SETTINGS = Settings(
    seed=7,
    memory=MemorySettings(budget_ms=1e9),  # it measures real time
    policy_loop=PolicyLoopSettings(heartbeat_s=3_600, minimum_interval_s=1_800),
    reflection=ReflectionSettings(
        mode="deterministic", budget_event_ms=90_000.0, budget_heartbeat_ms=90_000.0
    ),
)


def market(seed: int, bars: int, symbols: int = 3) -> BarSeries:
    """One-minute bars of a world in which there is something to trade."""
    return make_world("reverting", seed=seed, bars=bars, symbols=symbols, timeframe="1m")


class Heard:
    """A feed whose rows are noted on their way to the trading loop."""

    def __init__(self, feed: Any) -> None:
        self._feed = feed
        self.rows: list[BarRow] = []
        self.traded: list[Item] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._feed, name)

    async def items(self, after: int | None) -> AsyncIterator[BarRow | FeedAnomaly]:
        """Those of the feed."""
        async for item in self._feed.items(after):
            if isinstance(item, BarRow):
                self.rows.append(item)
            if isinstance(item, BarRow) or item.kind in CONFLICTING:
                self.traded.append(item)
            yield item


@dataclass(frozen=True)
class Run:
    """What a paper run left behind.

    Attributes:
        outcome: how it ended.
        journal: its rows.
        rows: what its feed handed over.
        traded: these rows, and between them the conflicts, which open boundaries.
        notes: what was told beside the journal.
        verified: whether it was played again and came out as it was stored.
    """

    outcome: PaperOutcome
    journal: list[JournalRow]
    rows: list[BarRow]
    traded: list[Item]
    notes: list[tuple[str, dict[str, Any]]]
    verified: bool
    bar_ns: int = round(BAR_S * NS)

    def of(self, *kinds: str) -> list[dict[str, Any]]:
        """Payloads of some kinds."""
        return [json.loads(row.payload) for row in self.journal if row.kind in kinds]

    def shown(self) -> Counter[Key]:
        """Anomalies as they stand in the journal."""
        return Counter(
            (Kind(anomaly["anomaly"]), anomaly["symbol"], anomaly["bar_label"])
            for anomaly in self.of("feed_anomaly")
        )

    def decisions(self, *without: str) -> list[tuple[Any, ...]]:
        """Every journal row but those of some kinds, without its place in the chain."""
        return [
            (row.kind, row.ts_event, row.known_at, row.symbol, row.payload)
            for row in self.journal
            if row.kind not in (without or ABOUT_THE_FEED)
        ]

    def blocked(self, *kinds: str) -> list[str]:
        """The reasons for which the symbols of some journal rows might not enter on the bar of that row."""
        reasons = {row.label + self.bar_ns: row.blocked for row in self.rows}
        return [
            reasons[row.known_at][str(row.symbol)]
            for row in self.journal
            if row.kind in kinds and row.symbol in reasons[row.known_at]
        ]


def traded(feed: Any, settings: Settings = SETTINGS, *, verify: bool = False) -> Run:
    """One process from the first item of its feed to the last, in virtual time; `verify` plays it again."""
    heard, notes, stored = Heard(feed), list[tuple[str, dict[str, Any]]](), MemoryStore()

    async def run() -> tuple[PaperOutcome, bool]:
        process = PaperProcess(
            ProcessInputs(
                settings,
                heard,
                stored.opened(),  # type: ignore[arg-type]  # a store by shape
                "elsewhere:1:a",
                NullMonitor(lambda kind, detail: notes.append((kind, detail))),
                look_s=3_600.0,
                lease_ms=3_600_000,
            )
        )
        outcome = await process.run("bad market")
        if not verify:
            return outcome, False
        report = await paper_replay(settings, stored.opened(), outcome.record).compare()  # type: ignore[arg-type]
        return outcome, report.ok

    outcome, verified = run_virtually(run())
    return Run(outcome, stored.journals[outcome.record.run_id], heard.rows, heard.traded, notes, verified)


def places(run: Run, series: BarSeries, kind: str) -> list[tuple[int, int]]:
    """Row and column of each journal row of a kind."""
    closes = series.close_times.tolist()
    rows = [row for row in run.journal if row.kind == kind]
    return [(closes.index(row.known_at), series.symbols.index(str(row.symbol))) for row in rows]


def clean_run(series: BarSeries, rows: Sequence[Item], settings: Settings = SETTINGS) -> Run:
    """A run on rows that come as they are, one a minute, and on conflicts between them."""

    async def minute(number: int) -> None:
        await asyncio.sleep(BAR_S)

    return traded(RunningFeed(series, minute, list(rows)), settings)
