"""Days of paper trading in virtual time, with everything that can go wrong drawn by seed.

The real `PaperProcess` trades a feed that runs on and misbehaves, asks a model that hangs, drips and fails,
writes to a store that goes away and that commits without saying so, and is killed between any two steps. The
same seed gives the same digest: the head hash of the journal and every order at the venue.
"""

import asyncio
import json
import platform
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from schemas.canonical import content_hash
from schemas.errors import ModelError, StoreError
from schemas.settings import LlmSettings, MemorySettings, PolicyLoopSettings, ReflectionSettings, Settings
from services.feeds.port import BarRow, FeedAnomaly, FeedAnomalyKind
from services.journal.chain import JournalRow, check_chain
from services.model_calls.language_model import ModelReply
from services.store import open_store
from services.store.tables import ORDER_KINDS
from tests.worker.feeds.misbehaving import Faults, MisbehavingReplay
from tests.worker.live.memory_store import GatedStore, MemoryStore, nobody_minds
from tests.worker.live.null_monitor import NullMonitor
from tests.worker.live.paper_runs import rows_of
from tests.worker.live.virtual_time import run_virtually
from tests.worker.replays import paper_replay
from worker.feeds.sample_data.worlds import make_world
from worker.live.committer import CRASH_POINTS
from worker.live.process import PaperOutcome, PaperProcess
from worker.live.process_inputs import Pace, ProcessInputs
from worker.models import Models

NS = 1_000_000_000
DAY_BARS = 1_440
HOUR_S = 3_600.0
BUDGET_MS = 90_000.0  # real milliseconds of thinking are taken off it: nothing may end near a bar's close
LEASE_MS = 3_600_000
SAVEPOINTS = 40  # in the time that is simulated; real time decides nothing here
GONE_PID = 2**22 + 1  # above the highest number of a process
FAULTS = Faults(disconnects=0.0005, disconnect_s=150.0, silences=0.0002)


def settings_of(seed: int) -> Settings:
    """Evaluations every four hours and at events; every third seed asks a model."""
    request = seed % 3 == 0
    return Settings(
        seed=seed,
        memory=MemorySettings(budget_ms=1e9),  # it measures real time
        policy_loop=PolicyLoopSettings(heartbeat_s=4 * 3_600, minimum_interval_s=4 * 3_600),
        reflection=ReflectionSettings(
            mode="full" if request else "deterministic",
            budget_event_ms=BUDGET_MS,
            budget_heartbeat_ms=BUDGET_MS,
        ),
        llm=LlmSettings(model="anthropic/claude-haiku-5-5" if request else "none"),
    )


class UnreliableModel:
    """Answers at once, after a while, in drips, too late, with nonsense, or not at all."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self.requested: Counter[str] = Counter()

    async def complete(self, *, system: str, prompt: str, max_tokens: int, deadline_ms: float) -> ModelReply:
        how = ("well", "slow", "drip", "hang", "storm", "nonsense")[
            int(self._rng.choice(6, p=(0.5, 0.15, 0.05, 0.1, 0.1, 0.1)))
        ]
        self.requested[how] += 1
        async with asyncio.timeout(deadline_ms / 1e3):
            return await self._answer(how)

    async def _answer(self, how: str) -> ModelReply:
        if how == "hang":
            await asyncio.Event().wait()
        if how == "drip":
            for _ in range(20):
                await asyncio.sleep(7.0)
        if how == "slow":
            await asyncio.sleep(75.0)
        if how == "storm":
            raise ModelError("overloaded", retryable=True, kind="overloaded")
        reply = {"comment": "no", "verdict": "pass", "findings": [], "deferred_needs": []}
        return ModelReply("{" if how == "nonsense" else json.dumps(reply), "scripted", 1, 1, 0.1)


class RunningMarket:
    """A feed in virtual time that does not wait: each row comes at the close of its bar, or later.

    Args:
        replay: bars as a bad source sends them.
        begin: label of the first row, ns; virtual time 0 is its close.
    """

    name = "market"
    lock_step = False

    def __init__(self, replay: MisbehavingReplay, begin: int) -> None:
        self._replay = replay
        self._begin = begin

    @property
    def symbols(self) -> tuple[str, ...]:
        return self._replay.symbols

    @property
    def timeframe(self) -> str:
        return self._replay.timeframe

    @property
    def label(self) -> Literal["open", "close"]:
        return self._replay.label

    async def items(self, after: int | None) -> AsyncIterator[BarRow | FeedAnomaly]:
        loop = asyncio.get_running_loop()
        async for item in self._replay.items(after):
            if isinstance(item, BarRow):
                due = (item.label - self._begin) / NS
                if due > loop.time():
                    await asyncio.sleep(due - loop.time())
                elif loop.time() - due > 60.0:
                    late = dict.fromkeys(self.symbols, "known too late")
                    item = BarRow(item.label, item.bars, late | dict(item.blocked))
            elif item.kind is FeedAnomalyKind.DISCONNECTED:
                await asyncio.sleep(FAULTS.disconnect_s)
            yield item

    def last_labels(self) -> dict[str, int]:
        return self._replay.last_labels()

    async def close(self) -> None:
        await self._replay.close()


class Killed(BaseException):
    """The process is gone."""


class Fate:
    """What happens to one process: where it dies, and when its store is away.

    Args:
        rng: draws it.
        kill: point and how often it is reached before the process dies; None: it lives.
    """

    def __init__(self, rng: np.random.Generator, kill: tuple[str, int] | None) -> None:
        self._rng = rng
        self._kill = kill
        self._left = 0 if kill is None else kill[1]
        self._away_until = -1.0
        self._next_away = self._wait()
        self.dead = False
        self.outages = 0
        self.unknown = 0

    def _wait(self) -> float:
        return float(self._rng.exponential(48 * HOUR_S))

    def reach(self, point: str) -> None:
        """A step of the process."""
        if self.dead:
            raise Killed(point)
        if self._kill is not None and point == self._kill[0]:
            self._left -= 1
            if self._left == 0:
                self.dead = True
                raise Killed(point)

    def gate(self, what: str) -> None:
        """A call of the store."""
        if self.dead:
            raise Killed(what)
        now = asyncio.get_running_loop().time()
        if now >= self._next_away:
            self._away_until = now + float(self._rng.uniform(5.0, 300.0))
            self._next_away = self._away_until + self._wait()
            self.outages += 1
        if now < self._away_until:
            raise StoreError("the store is away", retryable=True)
        if what == "committed" and self._rng.random() < 0.0005:
            self.unknown += 1
            raise StoreError("timed out: committed, and nobody said so", retryable=True)


@dataclass
class Played:
    """What a seed came to.

    Attributes:
        breaks: invariants that did not hold, each in a sentence.
        digest: of head hash and venue orders.
        resumed: processes that went on from a savepoint.
    """

    seed: int
    bars: int
    digest: str
    breaks: list[str]
    kills: int
    outages: int
    unknown: int
    resumed: int
    requested: Counter[str] = field(default_factory=Counter)
    anomalies: int = 0
    orders: int = 0
    evaluations: int = 0


class World:
    """One seed: its market, its store, and the processes that trade it one after the other.

    Args:
        seed: of everything.
        days: of one-minute bars.
        kills: processes that die before the one that comes to the end.
        folder: of a real SQLite store; None keeps everything in memory.
    """

    def __init__(self, seed: int, days: float, kills: int, folder: Path | None = None) -> None:
        self.seed = seed
        self.folder = folder
        self.series = make_world(
            "reverting", seed=seed, bars=round(days * DAY_BARS), symbols=1, timeframe="1m"
        )
        self.settings = settings_of(seed)
        self.rng = np.random.default_rng([seed, 1])
        self.model = UnreliableModel(np.random.default_rng([seed, 2]))
        self.stored = MemoryStore()
        self.resumed = 0
        self.fates: list[Fate] = []
        self.deaths = [self._death() for _ in range(kills)]
        self.feed = MisbehavingReplay(self.series, seed, FAULTS, continuous=True)

    def _death(self) -> tuple[str, int]:
        point = CRASH_POINTS[int(self.rng.integers(len(CRASH_POINTS)))]
        longest = self.series.shape[0] // 5 if point in ("validated", "committed") else 2
        return point, 1 + int(self.rng.integers(longest))

    async def live(self) -> PaperOutcome:
        """Trade to the end of the market, through every death."""
        for number, death in enumerate([*self.deaths, None]):
            fate = Fate(np.random.default_rng([self.seed, 3, number]), death)
            self.fates.append(fate)
            outcome = await self._process(number, fate)
            if outcome is not None and outcome.document is not None:
                return outcome
        raise AssertionError("the last process has no death, and yet it ended early")

    @asynccontextmanager
    async def _store(self, gate: Callable[[str], None] = nobody_minds) -> AsyncIterator[Any]:
        if self.folder is None:
            yield self.stored.opened(gate)
            return
        async with await open_store(f"sqlite:///{self.folder}/{self.seed}.db", create=True) as store:
            yield GatedStore(store, gate)

    async def _process(self, number: int, fate: Fate) -> PaperOutcome | None:
        """One process; None when it died, however that showed."""
        async with self._store(fate.gate) as store:
            return await self._traded(number, fate, store)

    async def _traded(self, number: int, fate: Fate, store: Any) -> PaperOutcome | None:
        process = PaperProcess(
            ProcessInputs(
                self.settings,
                RunningMarket(self.feed, int(self.series.times[0])),
                store,
                # A real store has real time: no process has this number, so nobody waits for its lease.
                f"{platform.node()}:{GONE_PID}:{number}" if self.folder else f"elsewhere:1:{number}",
                NullMonitor(self._note),
                models=Models(fast=self.model) if self.settings.uses_models else Models(),
                points=fate,
                look_s=HOUR_S,
                lease_ms=LEASE_MS,
                pace=Pace(events=10**9, rows=self.series.shape[0] // SAVEPOINTS, share=0.0),
            )
        )
        while True:
            try:
                return await process.run("simulated")
            except Killed:
                return None
            except StoreError:
                if fate.dead:
                    return None
                await asyncio.sleep(60.0)  # whoever supervises it starts it again

    def _note(self, kind: str, detail: dict[str, Any]) -> None:
        self.resumed += kind == "recovered" and detail["rows_played"] < detail["rows"]

    async def judged(self, *, replay: bool) -> Played:
        """Live, then look at everything that was left behind."""
        outcome = await self.live()
        async with self._store() as store:
            return await self._judged(outcome, store, replay=replay)

    async def _judged(self, outcome: PaperOutcome, store: Any, *, replay: bool) -> Played:
        run_id = outcome.record.run_id
        rows = [row async for row in store.journal.rows(run_id)]
        bars = [row async for row in store.trading.rows(run_id)]
        sends = await store.trading.at_venue(f"{self.settings.account.name}/{run_id}")
        breaks = [*self._bars(bars), *_orders(rows, sends), *_entries(rows), *_answers(rows)]
        report = await check_chain(_each(rows), events=outcome.record.events, head_hash=rows[-1].hash)
        if report.problem is not None:
            breaks.append(f"the chain is broken: {report.problem}")
        breaks += [f"an error was journalled: {row.payload}" for row in rows if row.kind == "error"]
        if replay:
            again = await paper_replay(self.settings, store, outcome.record).compare()
            breaks += [] if again.ok else [f"the replay differs: {again.problem}"]
        kinds = Counter(row.kind for row in rows)
        return Played(
            self.seed,
            self.series.bar_count,
            content_hash({"head": rows[-1].hash, "venue": dict(sorted(sends.items()))}),
            breaks,
            resumed=self.resumed,
            kills=sum(fate.dead for fate in self.fates),
            outages=sum(fate.outages for fate in self.fates),
            unknown=sum(fate.unknown for fate in self.fates),
            requested=self.model.requested,
            anomalies=kinds["feed_anomaly"],
            orders=len(sends),
            evaluations=kinds["policy_evaluation"],
        )

    def _bars(self, stored: list[BarRow]) -> list[str]:
        """Every row of the market is stored once and in order, whoever died meanwhile."""
        taken = [(row.label, dict(row.bars)) for row in stored]
        sent = [(row.label, dict(row.bars)) for row in rows_of(self.feed.arrived)]
        return [] if taken == sent else [f"{len(taken)} rows were taken, {len(sent)} were sent, or others"]


def _orders(rows: list[JournalRow], sends: dict[str, int]) -> list[str]:
    """None is lost, none is new, none has a second meaning."""
    meant = [json.loads(row.payload)["order_id"] for row in rows if row.kind in ORDER_KINDS]
    shown = []
    if len(set(meant)) != len(meant):
        shown.append("an order was journalled twice")
    if missing := set(meant) - set(sends):
        shown.append(f"{len(missing)} orders never reached the venue")
    if strange := set(sends) - set(meant):
        shown.append(f"{len(strange)} orders at the venue that nobody journalled")
    return shown


def _entries(rows: list[JournalRow]) -> list[str]:
    """No order to enter is accepted for a symbol on a row that blocks it."""
    shown, blocked = [], {}
    known = -1
    for row in rows:
        if row.kind == "entries_blocked":
            blocked, known = json.loads(row.payload)["blocked"], row.known_at
        if row.kind == "order_accepted" and row.symbol in blocked and row.known_at >= known:
            shown.append(f"row {row.seq} enters {row.symbol} while it is blocked: {blocked[row.symbol]}")
    return shown


def _answers(rows: list[JournalRow]) -> list[str]:
    """Every evaluation that was asked for is answered once."""
    events = [json.loads(row.payload) for row in rows if row.kind == "policy_event"]
    request = Counter(event["event_id"] for event in events if event["evaluated"])
    arrived = Counter(json.loads(row.payload)["event_id"] for row in rows if row.kind == "answer_arrived")
    return [] if request == arrived else [f"{request.total()} evaluations, {arrived.total()} answers"]


async def _each(rows: list[JournalRow]) -> AsyncIterator[JournalRow]:
    for row in rows:
        yield row


def played(
    seed: int, days: float, kills: int = 3, *, replay: bool = False, folder: Path | None = None
) -> Played:
    """One seed, from its first bar to its judgement."""
    result: Played = run_virtually(World(seed, days, kills, folder).judged(replay=replay))
    return result
