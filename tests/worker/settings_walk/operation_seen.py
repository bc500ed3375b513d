"""Looks at what surrounds decisions: bars, stores, feeds, endpoint, logs, notifications and crashes."""

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_args

import pytest
from starlette.exceptions import HTTPException

from agents.tool_hosts.mcp import target_of
from schemas.errors import ConfigError, DataError, FeedError
from schemas.settings import Settings
from schemas.settings.live import NotificationKind
from services.feeds.assembler import RowAssembler
from services.journal.chain import JournalRow
from services.journal.sinks import MemorySink, StoreSink
from services.journal.writer import JournalWriter
from services.playbooks.assembly import given_playbooks
from services.store import open_store
from tests.worker.feeds.growing import HEADER, NS, World, close, line
from tests.worker.operations.asking import NOW, Shown, request, status
from tests.worker.settings_walk.walking import Look
from tests.worker.shared_runs import embedded_bars
from worker.bootstrap import assemble
from worker.cli import backtest
from worker.console.backtests import bar_files
from worker.feeds.ccxt.live import LiveBars
from worker.feeds.doubts import check_doubts
from worker.feeds.files.files import load_bar_file
from worker.feeds.files.symbol_rows import Selection
from worker.feeds.opening import open_feed
from worker.feeds.selected_bars import load_bars
from worker.live.crash_counter import StartLimit
from worker.operations.alerts import DRAFTED, Alert, WaitingChanges
from worker.operations.logs import configure_logging, logger
from worker.operations.monitoring import operate, prepare
from worker.operations.notifications import Notifier, Outcome
from worker.secrets.redaction import Redactor
from worker.settings import ResolvedSettings

FILE = "bars.csv"
ROWS = "".join(
    f"2024-01-{day:02d},A,1,2,1,1.5,10\n2024-01-{day:02d},B,1,2,1,1.5,10\n" for day in range(1, 31)
)


def a_file(name: str = FILE) -> str:
    Path(name).write_text("time,symbol,open,high,low,close,volume\n" + ROWS)
    return name


def tool_servers(settings: Settings) -> Any:
    """What a client of each server of tools connects to."""
    targets = {name: target_of(it, {"DESK": "t0ken"}) for name, it in settings.planner.servers.items()}
    return {name: repr(target.args if hasattr(target, "gen") else target) for name, target in targets.items()}


def bars(settings: Settings) -> Any:
    """The bars that the settings choose of a small file, or why they are refused."""
    a_file(), a_file("other.csv")
    with Path("other.csv").open("a") as more:
        more.write("2024-01-31,A,1,2,1,1.5,10\n")
    try:
        found = load_bars(settings)
    except (ConfigError, DataError) as error:
        return str(error)
    return [found.symbols, found.timeframe, found.label, found.times.tolist()]


def doubtful(settings: Settings) -> Any:
    """What is said of a file in which a row stands twice."""
    a_file()
    text = Path(FILE).read_text()
    Path("twice.csv").write_text(text + text.splitlines()[-1] + "\n")
    try:
        return check_doubts(load_bar_file("twice.csv", Selection(tz="UTC")), settings.data)
    except DataError as error:
        return str(error)


def command(settings: Settings) -> Any:
    """The files that a backtest leaves, and in how many pieces its journal was written."""
    pieces: list[int] = []

    class Counted(StoreSink):
        async def write(self, rows: list[JournalRow]) -> None:
            pieces.append(len(rows))
            await super().write(rows)

    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        a_file()
        patch.setattr("worker.runs.store_run.StoreSink", Counted)
        backtest._run(ResolvedSettings(settings, {}), "walk")
        return [sorted(str(path) for path in Path().rglob("*") if path.is_file()), pieces]


def books(settings: Settings) -> Any:
    """The playbooks of a session, or why there are none."""
    try:
        return [playbook.id for playbook in given_playbooks(settings, None)]
    except ConfigError as error:
        return str(error)


def first_row(settings: Settings) -> Any:
    """The first row of a journal; the draws of an ablation begin with its seed too."""
    sink = MemorySink()
    made = assemble(settings, embedded_bars("2003-01-01", "2003-01-31"), JournalWriter(sink))
    made.begin()
    asyncio.run(made.journal.flush())
    return json.loads(sink.rows[0].payload)["seed"]


def growing(play: Callable[[World], None], until: int = 12) -> Look:
    """A look at what the feed of a growing file says while something is done to the file."""

    def looked(settings: Settings) -> Any:
        with TemporaryDirectory() as folder:
            world = World(Path(folder) / FILE, settings=settings.runtime.feed)
            world.write(HEADER)
            play(world)
            found: list[Any] = []
            try:
                found += world.run(close(until))
            except FeedError as error:
                found.append(str(error).partition("has been")[2])
            return [[repr(item) for item in found], world.now]

    return looked


def steadily(world: World) -> None:
    """Nine bars stand there, others come; of one there are two versions, one comes late, two are missing."""
    world.symbols = ("A", "B")
    world.write(HEADER + "".join(line(number) + line(number, "B") for number in range(-9, 0)))
    for number in range(9):
        if number not in (5, 6):
            world.append(close(number) + NS, line(number))
        world.append(close(number) + (130 if number == 7 else 2) * NS, line(number, "B"))
    world.append(close(3), line(2, price=90.0))


def jumping(world: World) -> None:
    """The wall clock jumps by three seconds."""
    world.append(close(0) + NS, line(0))
    world.at(close(1), lambda: setattr(world, "jump", 3 * NS))
    world.append(close(2) + NS, line(2))


def vanishing(world: World) -> None:
    """The file is taken away."""
    world.append(close(0) + NS, line(0))
    world.at(close(1), world.path.unlink)


def pausing(world: World) -> None:
    """A label without any bar, then one."""
    world.append(close(0) + NS, line(0))
    world.append(close(9) + NS, line(9))


def exchange(settings: Settings) -> Any:
    """An exchange as it is opened, and the patience of what reads it; nothing is connected."""

    async def opened() -> Any:
        feed: Any = open_feed("ccxt:binance", settings)
        driver = feed._exchange._driver
        grid, wake = feed._grid, asyncio.Event()
        feed._clock.now = lambda: NOW + 10 * NS
        assembler = RowAssembler(feed.symbols, grid, feed._settings, start=0, after=None)
        live: Any = LiveBars(feed._exchange, assembler, feed._settings, feed._clock, (0, 0), wake)
        line, steady = live._lines["BTC/USDT"], feed._clock.steady()
        feed._clock.steady = lambda: steady
        for _ in range(20):
            live._postpone(line, None)
        patience = (line.not_before - steady) / NS
        seen = [driver.urls["api"]["public"], driver.timeout, driver.rateLimit]
        await feed.close()
        return [*seen, str(driver.options.get("fetchMarkets")), live.newest_settled(), patience]

    return asyncio.run(opened())


def served(settings: Settings) -> Any:
    """What the endpoint of a process answers, and where it listens; or why there is none."""
    operations = settings.runtime.operations

    async def requested() -> Any:
        prepared = prepare(operations, Redactor(()), {})
        late = Shown(status(last_bar_at=NOW - 400 * 10**9, last_bars={"BTC/USDT": NOW - 400 * 10**9}))
        async with operate(prepared, late, "r0001", "paper") as opened:
            if opened.endpoint is None:
                return None
            opened.endpoint._now = lambda: NOW
            answers = []
            for host in (b"127.0.0.1", b"box.example"):
                try:
                    answers.append(opened.endpoint.answer(request("/ready", [(b"host", host)])).status_code)
                except HTTPException as refused:
                    answers.append(refused.status_code)
            return answers

    try:
        return asyncio.run(requested())
    except ConfigError as error:
        return str(error)


def logged(settings: Settings) -> Any:
    """What a record of each level looks like, in the file of the log."""
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        with configure_logging(settings, {}):
            for level in ("debug", "info", "warning", "error"):
                getattr(logger("walk"), level)("seen")
        texts = [path.read_text() for path in sorted(Path().glob("*.log"))]
        names = [path.name for path in sorted(Path().glob("*.log"))]
    return [names, ["{" in text for text in texts], [text.count("seen") for text in texts]]


def notified(settings: Settings) -> Any:
    """Which news a notifier takes, each told at 0 s, and again after a minute."""
    now = [0.0]
    unheard: Any = Unheard()
    made = Notifier(unheard, settings.runtime.operations, "r", "paper", Redactor(()), timer=lambda: now[0])
    shown = []
    for at in (0.0, 60.0):
        now[0] = at
        shown.append([kind for kind in get_args(NotificationKind) if made.tell(Alert(kind, "x", NOW))])
    return shown


def linked(settings: Settings) -> Any:
    """Where the message of a waiting plan leads."""
    made = WaitingChanges("r", dict, lambda: ["p"], settings.runtime.console.url)
    plan = {"expires_at": NOW, "steps": [], "expected_outcome": "less risk", "basis": {"versions": {}}}
    drafted = {"plan_id": "p", "plan_hash": "h", "revision": 1, "plan": plan}
    return [news.summary for news in made.of(DRAFTED, drafted, NOW)]


def offered(settings: Settings) -> Any:
    """Bar files that the console offers."""
    Path("bars").mkdir(exist_ok=True)
    Path("bars/own.csv").touch()
    folder = settings.runtime.console.folder
    return bar_files(None if folder is None else Path(folder))


class Unheard:
    """Stands for a webhook; nothing is delivered to it here."""

    async def send(self, body: bytes, key: str) -> Outcome:
        return Outcome("sent", "")

    async def close(self) -> None:
        """Nothing to close."""


def crashed(settings: Settings) -> Any:
    """After how many crashes in a row a start is a crash loop, and for how many minutes each counts."""

    async def play(folder: str) -> Any:
        async with await open_store(f"sqlite:///{folder}/starts.db", create=True) as store:
            limits = [
                StartLimit(store.leases, str(n), settings.runtime.operations, lambda kind, detail: None)
                for n in range(7)
            ]
            looping = [await limit.crashed_too_often("r0001") for limit in limits]
            left = [start.until_ms / 1e3 - time.time() for start in await store.leases.list_in_force("start")]
        return looping, {round(seconds / 60) for seconds in left}

    with TemporaryDirectory() as folder:
        return asyncio.run(play(folder))
