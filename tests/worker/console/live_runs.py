"""A live run in a thread, its console beside it: bars come when the test says so."""

import asyncio
import queue
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from schemas.plan import ChangePlan
from schemas.settings import Settings
from services.plans.drafting import draft
from services.store import open_store
from services.store.change_plans import Operator
from tests.services.plans.plan_worlds import NAME, risk
from tests.worker.live.null_monitor import NullMonitor
from tests.worker.live.paper_runs import RunningFeed
from tests.worker.shared_runs import embedded_bars
from worker.console.beside import ConsoleThread
from worker.live.process import PaperProcess
from worker.live.process_inputs import ProcessInputs
from worker.operations.monitoring import prepare
from worker.secrets.redaction import Redactor
from worker.settings import load_settings

PATIENCE_S = 60.0


class SteppedRun:
    """A run of daily bars that trades as far as it is let.

    Attributes:
        url: of its console.
    """

    url: str

    def __init__(self, folder: Path) -> None:
        address = f"sqlite:///{folder}/thinktwice.db"
        self.settings: Settings = load_settings(None, flags={"runtime.db": ("--db", address)}).settings
        self._opened: queue.Queue[str] = queue.Queue()
        self._reached: queue.Queue[int] = queue.Queue()
        self._limit, self._may = 0, asyncio.Event()
        self._process: PaperProcess
        self._loop: asyncio.AbstractEventLoop
        self._thread = threading.Thread(target=lambda: asyncio.run(self._trade()))

    async def _trade(self) -> None:
        self._loop = asyncio.get_running_loop()
        redactor = Redactor([])
        prepared = prepare(self.settings.runtime.operations, redactor, {})
        console = ConsoleThread(self.settings, prepared, 0, lambda url, run_id: self._opened.put(url))
        bars = embedded_bars("2009-01-01", "2009-12-31").select(("AAPL", "IBM"))
        async with await open_store(self.settings.runtime.db, create=True) as self.store:
            inputs = ProcessInputs(
                self.settings, RunningFeed(bars, self._between), self.store, "host:1:a",
                console.over(NullMonitor(lambda kind, detail: None)), look_s=0.02,
            )  # fmt: skip
            self._process = PaperProcess(inputs)
            await self._process.run("stepped")

    async def _between(self, number: int) -> None:
        if number:
            await self._process.traded.committing.caught_up()
        self._reached.put(number)
        while number >= self._limit:
            self._may.clear()
            await self._may.wait()

    def to(self, row: int) -> None:
        """Let bars come up to a row, and wait until they are stored."""

        def let() -> None:
            self._limit = row
            self._may.set()

        self._loop.call_soon_threadsafe(let)
        while self._reached.get(timeout=PATIENCE_S) < row:
            pass

    def ask(self, work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        """What something gives in the loop of the process."""
        return asyncio.run_coroutine_threadsafe(work(), self._loop).result(PATIENCE_S)

    def plan(self, value: float) -> ChangePlan:
        """A plan of a person that waits."""

        async def put() -> ChangePlan:
            session = self._process.traded.stepper.session
            facts = session.slow_loop.plans.facts(session.clock.now)
            plan = draft([risk(value, NAME)], facts, "text", understanding="the operator wants it")
            assert isinstance(plan, ChangePlan)
            await self.store.plans.put("r0001", plan)
            return plan

        plan: ChangePlan = self.ask(put)
        return plan

    def approve(self, plan: ChangePlan) -> None:
        """Approve a plan, as its command does; the process has heard it then."""
        now = self._process.traded.stepper.session.clock.now
        ann = Operator("ann", now, now)
        self.ask(lambda: self.store.plans.approve("r0001", plan.plan_id, plan.content_hash, ann))
        self._wait_for_answers()

    def request(self, kind: Any, payload: dict[str, Any]) -> None:
        """Ask the process for something, until it has answered."""
        self.ask(lambda: self.store.operator.put("r0001", kind, payload))
        self._wait_for_answers()

    def _wait_for_answers(self) -> None:
        """What was asked waits for the next look of the process, and no bar may come before it."""
        while self.ask(lambda: self.store.operator.waiting("r0001")):
            time.sleep(0.01)

    def risk(self) -> float:
        """The risk fraction of the playbook in force in the process."""
        return float(self._process.traded.stepper.session.books.reader.get(NAME).definition.risk_fraction)


@contextmanager
def stepped(folder: Path) -> Iterator[SteppedRun]:
    """A run whose console answers; at the end it is stopped."""
    run = SteppedRun(folder)
    run._thread.start()
    try:
        run.url = run._opened.get(timeout=PATIENCE_S)
        yield run
    finally:
        run._loop.call_soon_threadsafe(run._process.stop, "the end of the test")
        run._thread.join(PATIENCE_S)
        assert not run._thread.is_alive()
