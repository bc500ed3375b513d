"""What a golden store holds: a live paper run with all that can be wrong with a feed, and a backtest."""

import asyncio
from collections.abc import Sequence
from typing import Any

from agents.judge_agent_client import JudgeAgentClient
from schemas.canonical import content_id
from schemas.judge import JudgeAction
from schemas.plan import ChangePlan, Proposed
from schemas.settings import RuntimeSettings, Settings
from schemas.slow_reflection import HighLevelReflectionReport, HighLevelReflectionRequest
from services.feeds.port import BarRow, FeedAnomaly, FeedAnomalyKind, series_of
from services.journal.sinks import StoreSink
from services.journal.writer import JournalWriter
from services.plans.drafting import draft
from services.playbooks.loader import load_playbooks
from services.store import NewRun, Store, open_store
from services.store.change_plans import Operator
from services.store.claims import SlotKey
from services.store.operator_requests import RequestKind
from tests.worker.live.null_monitor import NullMonitor
from tests.worker.live.paper_runs import Item, RunningFeed, rows_of
from trading_core.bars import BarSeries
from worker.feeds.sample_data.worlds import make_world
from worker.live.process import PaperProcess
from worker.live.process_inputs import ProcessInputs
from worker.models import Overrides
from worker.operations.environment import environment
from worker.runs.backtest import run_backtest
from worker.session import Session
from worker.slow_worker.ports import JOB

MADE_AT = 1_700_000_000_000_000_000
OWNER = "golden:1:a"
ROWS, HISTORY, BACKTEST_ROWS = 420, 150, 250
ODD_ROWS = 20  # from one anomaly to the next
ALONE, DOUBTED = range(250, 253), range(340, 360)
REQUESTED: dict[int, tuple[RequestKind, dict[str, Any]]] = {
    300: ("kill_switch", {"on": True}),
    310: ("kill_switch", {"on": False}),
    400: ("replan", {"report_id": None}),
}
KINDS = FeedAnomalyKind
PLANNED = 380  # the row at which an operator plans a change and approves it
PAPER, BACKTEST = "r0001", "r0002"


def bars() -> BarSeries:
    """The world; what is stored is read from the store ever after."""
    return make_world("reverting", seed=7, bars=ROWS, symbols=2, timeframe="1h")


def settings() -> Settings:
    """Those of both runs; the address names no folder."""
    return Settings(runtime=RuntimeSettings(db="sqlite:///golden.db"))


def planted(series: BarSeries) -> list[Item]:
    """Rows with every kind of anomaly among them; some may not enter, some lack a symbol."""
    items: list[Item] = []
    first, second = series.symbols
    shown = iter([kind for kind in KINDS if kind not in (KINDS.MISSING, KINDS.CONFLICT)])
    for number, row in enumerate(rows_of(series)):
        if number < HISTORY:
            items.append(BarRow(row.label, row.bars, history=True))
            continue
        if number % ODD_ROWS == 7 and (kind := next(shown, None)) is not None:
            found = {"blocked": {first: "implausible bar"}} if kind is KINDS.WITHHELD else {"count": number}
            items.append(FeedAnomaly(kind, first, row.label, found, {"lag_s": 0.25}))
        if number in ALONE:
            items.append(FeedAnomaly(KINDS.MISSING, second, row.label, {}))
            row = BarRow(row.label, {first: row.bars[first]})
        if number in DOUBTED:
            if number == DOUBTED[0]:
                items.append(FeedAnomaly(KINDS.CONFLICT, first, row.label, {"close": row.bars[first].close}))
            row = BarRow(row.label, row.bars, blocked={first: "conflict"})
        items.append(row)
    return items


async def traded(store: Store) -> None:
    """The paper run: answers and an operator's commands arrive beside the bars."""

    async def between(number: int) -> None:
        await asyncio.sleep(0.003)  # answers come within a row or two
        done = process.traded.stepper.rows if number else 0
        if done == PLANNED and done not in questions:
            questions.add(done)
            await planned(store, process.traded.stepper.session)
            await answered(store)
        if done in REQUESTED and done not in questions:
            questions.add(done)
            await store.operator.put(PAPER, *REQUESTED[done])
            await answered(store)  # it is carried out at this row

    questions: set[int] = set()
    feed = RunningFeed(bars(), between, planted(bars()))
    around = NullMonitor(lambda kind, detail: None)
    process = PaperProcess(ProcessInputs(settings(), feed, store, OWNER, around, look_s=0.01))
    await process.run("golden")


async def answered(store: Store) -> None:
    """Wait until the process has answered what waits, or a few seconds."""
    for _ in range(200):
        if not await store.operator.waiting(PAPER):
            return
        await asyncio.sleep(0.02)


async def planned(store: Store, session: Session) -> None:
    """A change plan that is approved and carried out at the next row."""
    now = session.clock.now
    action = JudgeAction(
        kind="set_risk_fraction", playbook_id="channel_breakout", value=0.004, reason="golden"
    )
    facts = session.slow_loop.plans.facts(now)
    plan = draft([Proposed(action)], facts, "text", understanding="less risk")
    assert isinstance(plan, ChangePlan)
    await store.plans.put(PAPER, plan)
    who = Operator("golden", MADE_AT, now)
    await store.plans.approve(PAPER, plan.plan_id, plan.content_hash, who)


async def reflected(
    store: Store, request: HighLevelReflectionRequest, report: HighLevelReflectionReport
) -> None:
    """A report of a worker, on its way through the inbox to a verdict."""
    key, facts = SlotKey(BACKTEST, JOB, request.slot), {"trigger": "slot"}
    lease = await store.leases.take(f"{JOB}/{BACKTEST}", OWNER, 60_000)
    assert lease is not None
    await store.claims.skip(lease, SlotKey(BACKTEST, JOB, request.slot - 1), "insufficient_episodes", {})
    assert await store.claims.claim(lease, key, request.content_hash, request.canonical_text(), facts)
    claim = await store.claims.get(key)
    assert claim is not None
    assert await store.reports.write(lease, claim, report)
    taken = await store.reports.take(BACKTEST, OWNER, 60_000)
    assert taken is not None
    judge = JudgeAgentClient(settings().judge, settings().gate)
    verdict = await judge.replan(report, load_playbooks(None), 0)
    assert await store.reports.deliver(taken, verdict, request.known_at)
    await store.leases.release(lease)


async def backtested(store: Store) -> None:
    """The backtest over the first rows of the same bars, with a report asked for when it was over."""
    series = _series([row async for row in store.trading.rows(PAPER)][:BACKTEST_ROWS])
    made = settings()
    data = {"source": "golden", "symbols": list(series.symbols), "timeframe": "1h", "label": "open"}
    record = await store.runs.create(
        NewRun(
            name="golden",
            created_at=MADE_AT,
            mode="backtest",
            config_hash=made.config_hash,
            config=made.payload(),
            data=data | {"path": None, "bars": BACKTEST_ROWS, "sha256": series.sha256},
            environment=environment(),
        )
    )
    journal = JournalWriter(StoreSink(store.journal, record.run_id), made.runtime.flush_rows)
    sessions: list[Session] = []
    await run_backtest(made, series, journal, own=Overrides(prepare=sessions.append))
    request, report = await sessions[0].slow_loop.reflect_now(series.shape[0] - 1)
    await store.on_demand.put(record.run_id, request, report)
    await reflected(store, request, report)
    await store.runs.close(record.run_id, "finished", {"report": content_id(report.payload())})


async def backtest_bars(store: Store) -> BarSeries:
    """What the stored backtest ran over."""
    return _series([row async for row in store.trading.rows(PAPER)][:BACKTEST_ROWS])


def _series(rows: Sequence[BarRow]) -> BarSeries:
    return series_of(bars_axes(), "1h", "open", rows)


def bars_axes() -> tuple[str, ...]:
    """The symbols of the world."""
    return ("W00", "W01")


async def made(address: str) -> None:
    """Both runs in a new store."""
    async with await open_store(address, create=True) as store:
        await traded(store)
        await backtested(store)
