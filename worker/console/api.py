"""The API of the console: everything can be read; plans are decided, questions asked, backtests started."""

import json
from collections.abc import AsyncIterator, Awaitable
from dataclasses import asdict
from typing import Annotated, Any, Literal, cast

from fastapi import APIRouter, Body, Depends, Path, Query
from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, StreamingResponse

from schemas.errors import ConfigError, ToolRefused
from services.evidence.tools import TOOLS
from worker.console.backtests import BacktestForm, StartedBacktest, bar_files
from worker.console.chart import Charts, chart_figure, charts_of
from worker.console.decisions import NS_PER_MS, Move
from worker.console.desk import Desk, desk_of
from worker.console.guards import demand_operator
from worker.console.people import Person
from worker.console.reflections import compare_runs, questions_of, reflections_of, sum_up_questions
from worker.console.stream import event_stream, progress_stream
from worker.review import run_list, run_status
from worker.review.asking import AskedQuestion, ask, ask_tool
from worker.review.playbook_versions import document_of_run
from worker.review.run_reports import list_reports, list_slots

ApiDesk = Annotated[Desk, Depends(desk_of)]
ApiCharts = Annotated[Charts, Depends(charts_of)]
Operator = Annotated[Person, Depends(demand_operator)]
Name = Annotated[str, Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]
RunName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]
MOST_ROWS = 5_000
JSON_LINES = "application/jsonl"
ERRORS: dict[int | str, dict[str, Any]] = {
    401: {"description": "nobody is logged in"},
    403: {"description": "a reader asks, or the token does not fit"},
    404: {"description": "there is no such run, plan, report or fill"},
    409: {"description": "it was decided, edited or ended meanwhile"},
}
api = APIRouter(prefix="/api", responses=ERRORS)


class Strict(BaseModel):
    """A body of which every field is known."""

    model_config = ConfigDict(extra="forbid")


class Switch(Strict):
    """The kill switch: `sure` says that it was asked for twice."""

    on: bool
    sure: Literal[True]


class Question(Strict):
    """A question in words, or one call of a tool with its arguments."""

    run: RunName = "latest"
    question: Annotated[str, StringConstraints(min_length=1, max_length=8_000)] | None = None
    tool: Annotated[str, StringConstraints(max_length=64)] | None = None
    arguments: dict[str, Any] = Field(default_factory=dict, max_length=32)


@api.get("/me")
async def me(request: Request, desk: ApiDesk) -> dict[str, Any]:
    """Who asks, and with which token a browser writes."""
    person: Person = request.state.person
    return {"name": person.name, "role": person.role, "store": desk.store.url}


@api.get("/runs")
async def runs(desk: ApiDesk) -> list[dict[str, Any]]:
    """Every run, oldest first."""
    return [run_list.document_of(record) for record in await desk.store.runs.all()]


@api.get("/runs/{run}")
async def run(run: Name, desk: ApiDesk) -> dict[str, Any]:
    """A run with its settings and its document."""
    record = await desk.run(run)
    return {**run_list.document_of(record), "config": record.config, "document": record.document}


@api.get("/runs/{run}/status")
async def status(run: Name, desk: ApiDesk) -> dict[str, Any]:
    """How the process of a run is."""
    return await run_status.status_of(desk.store, await desk.run(run))


@api.get("/runs/{run}/journal", response_class=StreamingResponse)
async def journal(
    run: Name,
    desk: ApiDesk,
    after: Annotated[int, Query(ge=-1, le=2**53)] = -1,
    limit: Annotated[int, Query(ge=1, le=MOST_ROWS)] = MOST_ROWS,
    kind: Annotated[list[str] | None, Query(max_length=64)] = None,
) -> StreamingResponse:
    """Rows behind a sequence number as JSON lines, in order."""
    rows = desk.rows(await desk.run(run), kind, after)
    first = await anext(rows, None)  # what is refused is refused before the answer begins

    async def lines() -> AsyncIterator[str]:
        count, row = 0, first
        while row is not None and count < limit:
            yield json.dumps(row, separators=(",", ":"), ensure_ascii=False) + "\n"
            count, row = count + 1, await anext(rows, None)

    return StreamingResponse(lines(), media_type=JSON_LINES)


@api.get("/runs/{run}/events", response_class=StreamingResponse)
async def events(
    run: Name, request: Request, desk: ApiDesk, after: Annotated[int, Query(ge=-1, le=2**53)] = -1
) -> StreamingResponse:
    """Rows as they are written, each with its sequence number as its id (text/event-stream)."""
    return await event_stream(desk.store, desk.ending, await desk.run(run), request, after)


@api.get("/runs/{run}/chart")
async def chart(run: Name, desk: ApiDesk, charts: ApiCharts) -> dict[str, Any]:
    """Symbols, the last window in ms, and the empty figure of the candles."""
    charted = await charts.of(desk.store, await desk.run(run))
    return {**await charted.head(), "figure": chart_figure()}


@api.get("/runs/{run}/window", response_class=JSONResponse)
async def window(
    run: Name,
    desk: ApiDesk,
    charts: ApiCharts,
    start: Annotated[float, Query(ge=-1e16, le=1e16, allow_inf_nan=False)],
    end: Annotated[float, Query(ge=-1e16, le=1e16, allow_inf_nan=False)],
    symbol: Annotated[int, Query(ge=0, le=100_000)] = 0,
) -> JSONResponse:
    """Candles, fills, levels and reflections between two times, ms; 1,500 candles at most."""
    charted = await charts.of(desk.store, await desk.run(run))
    return JSONResponse(await charted.window(symbol, int(start), int(end)))  # unchecked: ten times as fast


@api.get("/runs/{run}/decision")
async def decision(
    run: Name,
    desk: ApiDesk,
    charts: ApiCharts,
    at: Annotated[float, Query(ge=-1e12, le=9e12, allow_inf_nan=False)],
    symbol: Annotated[int, Query(ge=0, le=100_000)] = 0,
    move: Move = "here",
    skips: bool = False,
) -> dict[str, Any]:
    """What was decided on a symbol at a time, ms, or at the next or previous one: findings, verdict, skip."""
    charted = await charts.of(desk.store, await desk.run(run))
    return await charted.decision(symbol, int(at) * NS_PER_MS, move, skips=skips)


@api.get("/runs/{run}/why/{fill}")
async def why(run: Name, fill: Annotated[str, Path(pattern=r"^[0-9A-Za-z_.-]{1,80}$")], desk: ApiDesk) -> Any:
    """The chain from a fill or a stop move back to bar, events, findings, verdict and playbook."""
    return asdict(await desk.why(await desk.run(run), fill))


@api.get("/runs/{run}/reflections")
async def reflections(run: Name, desk: ApiDesk) -> dict[str, Any]:
    """Statuses, findings by code and month, and how long each tier took."""
    record = await desk.run(run)
    return await reflections_of(desk.store, record)


@api.get("/runs/{run}/models")
async def models(run: Name, desk: ApiDesk) -> dict[str, Any]:
    """What models were asked in a run, what they replied, and what it cost, by seat and by question."""
    return await questions_of(desk.store, await desk.run(run))


@api.get("/runs/{run}/playbooks")
async def playbooks(run: Name, desk: ApiDesk) -> Any:
    """Every version of every playbook, with its evidence."""
    return await document_of_run(desk.store, await desk.run(run), None, lambda _: None)


@api.get("/runs/{run}/reports")
async def reports(run: Name, desk: ApiDesk) -> dict[str, Any]:
    """The slots of the slow loop and what became of them, with the reports."""
    record = await desk.run(run)
    return {
        **await list_slots(desk.store, record),
        "reports": await list_reports(desk.store, record.run_id),
    }


@api.get("/runs/{run}/requests")
async def requests(run: Name, desk: ApiDesk) -> list[dict[str, Any]]:
    """What was asked of the process of a run, and what it answered."""
    record = await desk.run(run)
    return [vars(found) for found in await desk.store.operator.all(record.run_id)]


@api.post("/runs/{run}/kill")
async def kill(run: Name, switch: Switch, desk: ApiDesk, person: Operator) -> Any:
    """Turn the kill switch of a run, or of a guard, on or off."""
    record = await desk.run(run)
    what = f"kill {'on' if switch.on else 'off'}"
    if record.mode == "guard":
        done: Awaitable[Any] = run_status.switch_guards(desk.store, record, on=switch.on, by=person.name)
    else:
        done = run_status.switch_run(desk.store, record, on=switch.on)
    return await desk.decide(person.name, what, f"run {record.run_id}", done)


@api.get("/compare")
async def compare(
    first: Annotated[RunName, Query()], second: Annotated[RunName, Query()], desk: ApiDesk
) -> dict[str, Any]:
    """Settings that differ between two runs, their figures, and the first decision at which they part."""
    return await compare_runs(desk.store, await desk.run(first), await desk.run(second))


@api.get("/tools")
async def tools() -> list[dict[str, Any]]:
    """The tools that answer questions, with the schemas of their arguments."""
    return [tool.definition.payload() for tool in TOOLS.values()]


@api.post("/ask")
async def ask_run(given: Question, desk: ApiDesk) -> dict[str, Any]:
    """Ask a run in words, or one tool; nothing is written."""
    if (given.question is None) == (given.tool is None):
        raise HTTPException(422, "give a question, or a tool with its arguments")
    try:
        if given.tool is not None:
            if given.tool not in TOOLS or not TOOLS[given.tool].reads_only:
                raise HTTPException(404, f"no tool {given.tool!r}: /api/tools has them")
            return await ask_tool(desk.store, given.tool, given.arguments)
        asked = AskedQuestion(" ".join((given.question or "").split()), await desk.run(given.run))
        return (await ask(desk.store, asked, desk.settings, desk.environment)).document
    except (ToolRefused, ConfigError) as error:
        raise HTTPException(422, str(error)) from error


@api.get("/questions")
async def questions(desk: ApiDesk) -> dict[str, Any]:
    """How the newest questions of conversations were answered: confidence, shares, calls and their ms."""
    return await sum_up_questions(desk.store)


@api.get("/config")
async def config(desk: ApiDesk) -> dict[str, Any]:
    """The settings that questions and texts are answered with; no secret stands in them."""
    return desk.settings.model_dump(mode="json", exclude={"runtime"})


@api.get("/trials")
async def trials(desk: ApiDesk) -> dict[str, Any]:
    """What was tried in the store on which bars."""
    from worker.runs.trials import list_ranges

    return {"ranges": list_ranges(await desk.store.trials.all())}


@api.get("/audit")
async def audit(desk: ApiDesk) -> list[dict[str, Any]]:
    """Who decided what, newest first."""
    return [vars(entry) for entry in await desk.store.console.audit()]


@api.get("/bars")
async def bars(desk: ApiDesk) -> dict[str, Any]:
    """Names of the bar files that a backtest may be started with."""
    return {"files": bar_files(desk.backtests.folder)}


@api.get("/backtests")
async def backtests(desk: ApiDesk) -> list[dict[str, Any]]:
    """Backtests that were started here, newest first."""
    return [started.document() for started in desk.backtests.all()]


@api.post("/backtests", status_code=202)
async def start_backtest(
    form: Annotated[BacktestForm, Body()], desk: ApiDesk, person: Operator
) -> dict[str, Any]:
    """Start a backtest in a process of its own; its run is in the store when it has ended."""
    started = await desk.decide(person.name, "backtest", "start", desk.backtests.start(form, person.name))
    return cast("StartedBacktest", started).document()


@api.get("/backtests/{number}")
async def backtest(number: Annotated[int, Path(ge=1, le=2**31)], desk: ApiDesk) -> dict[str, Any]:
    """How far a backtest is."""
    found = desk.backtests.find(number)
    if found is None:
        raise HTTPException(404, f"no backtest {number} was started here")
    return found.document()


@api.get("/backtests/{number}/events", response_class=StreamingResponse)
async def backtest_events(number: Annotated[int, Path(ge=1, le=2**31)], desk: ApiDesk) -> StreamingResponse:
    """How far a backtest is whenever that changes, until it has ended (text/event-stream)."""
    found = desk.backtests.find(number)
    if found is None:
        raise HTTPException(404, f"no backtest {number} was started here")
    return progress_stream(desk.ending, found)


@api.delete("/backtests/{number}")
async def cancel_backtest(
    number: Annotated[int, Path(ge=1, le=2**31)], desk: ApiDesk, person: Operator
) -> dict[str, Any]:
    """Cancel a backtest, as Ctrl-C does."""
    found = desk.backtests.find(number)
    if found is None:
        raise HTTPException(404, f"no backtest {number} was started here")
    desk.backtests.cancel(found)
    await desk.store.console.note(person.name, "cancel", f"backtest {number}", "done")
    return found.document()
