"""The pages of the console: each shows what the API gives, and writes by it.

A page that a local person opens begins a session, so that what it writes carries the token of the page.
"""

import time
from functools import cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import parse_qs

from fastapi import APIRouter, Depends, Query
from jinja2 import Environment
from markupsafe import Markup, escape
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from schemas.errors import ConfigError
from services.store.plan_records import PlanRecord, StoredPlan, summary_of
from worker.console.backtests import bar_files
from worker.console.desk import Desk, desk_of
from worker.console.guards import COOKIE, TOKEN, address_of
from worker.console.people import Person, TooManyTries
from worker.console.reflections import (
    IDS,
    compare_runs,
    making_of,
    questions_of,
    reflections_of,
)
from worker.pages import __name__ as pages_package
from worker.pages.equity_sketch import equity_sketch
from worker.pages.figures import shown_time
from worker.pages.rendering import page_environment, template_text
from worker.review import run_list
from worker.review.plan_document import document_of, revision_changes
from worker.review.playbook_versions import document_of_run
from worker.review.run_reports import find_position, list_reports, list_slots
from worker.runs.replay import NotReplayable
from worker.runs.trials import list_ranges

if TYPE_CHECKING:
    from services.store import RunRecord

PageDesk = Annotated[Desk, Depends(desk_of)]
RunQuery = Annotated[str | None, Query(max_length=64)]
SESSION_AGE_S = 12 * 3_600
pages = APIRouter(include_in_schema=False)
# How each word of an outcome is shown: a sign beside the word, so that colour alone never says it.
SIGNS = {
    "IDLE": "·",
    "THESIS_ARMED": "◇",
    "POSITION_OPEN": "●",
    "HOLD_LOCK": "▣",
    "COOLDOWN": "~",
    "INVALIDATED": "✕",
    "alive": "✔",
    "not_running": "✖",
    "never_seen": "○",
    "up": "▲",
    "away": "▼",
    "on": "⊘",
    "off": "✔",
    "safe_mode": "⚠",
    "stopping": "‖",
    "HOLD": "■",
    "ABSTAIN": "○",
    "ERROR": "✖",
    "BLOCKED": "⊘",
    "SKIPPED": "»",
    "STALE": "◷",
    "pass": "✔",
    "revise": "↻",
    "block": "⊘",
    "error": "✖",
    "awaiting_approval": "?",
    "approved": "✔",
    "executing": "▶",
    "completed": "✔",
    "cancelled": "✖",
    "declined": "✖",
    "expired": "◷",
    "stale": "◷",
    "failed": "✖",
    "rolled_back": "↺",
    "running": "▶",
    "finished": "✔",
    "interrupted": "‖",
    "damaged": "✖",
}


@cache
def templates() -> Environment:
    """Templates of the console, and the style of every page of ours."""
    made = page_environment(str(__package__), pages_package)
    made.globals |= {"signs": SIGNS, "now_ns": time.time_ns}
    made.tests |= {
        "telling": lambda value: value not in (None, "", [], {}),
        "is_id": lambda name: name.endswith(IDS),
    }
    return made


def page(request: Request, template: str, title: str, **shown: Any) -> Response:
    """A page with who looks at it; of a local person without a session it begins one."""
    person: Person | None = getattr(request.state, "person", None)
    cookie = None
    if person is not None and person.token is None and "authorization" not in request.headers:
        people = desk_of(request).people
        cookie, person = people.begin(person)
    text = (
        templates()
        .get_template(template)
        .render(shown, title=title, person=person, path=request.url.path, token_name=TOKEN)
    )
    response = HTMLResponse(text)
    if cookie is not None:
        set_cookie(request, response, cookie)
    return response


@cache
def bokeh_scripts() -> list[str]:
    """Names of the scripts of Bokeh that a page of charts loads, in order."""
    from bokeh.resources import Resources

    found = Resources(mode="server", components=["bokeh"], minified=True).js_files
    return [PurePosixPath(name.partition("?")[0]).name for name in found]


def set_cookie(request: Request, response: Response, cookie: str) -> None:
    """Give a browser its session."""
    response.set_cookie(
        COOKIE,
        cookie,
        max_age=SESSION_AGE_S,
        httponly=True,
        samesite="strict",
        secure=request.app.state.address.secure,
    )


def error_page(request: Request, status: int, text: str) -> Response:
    """What went wrong, as a page."""
    response = page(request, "error.html", f"{status}", text=text)
    response.status_code = status
    return response


@pages.get("/style.css")
async def style() -> Response:
    """The style of every page of ours, and what the console adds."""
    text = "".join(templates().get_template(name).render() for name in ("style.css", "console.css"))
    return Response(text, media_type="text/css")


@pages.get("/chart.js")
async def chart_script() -> Response:
    """What the pages of runs draw alike."""
    return Response(template_text("chart.js"), media_type="text/javascript")


@pages.get("/login")
async def login_page(request: Request) -> Response:
    """The form to log in by."""
    return page(request, "login.html", "Log in", failed=None)


@pages.post("/login")
async def log_in(request: Request, desk: PageDesk) -> Response:
    """Begin a session of a user."""
    form = parse_qs((await request.body()).decode("utf-8", "replace"), max_num_fields=8)
    name, password = (form.get(field, [""])[0] for field in ("name", "password"))
    try:
        cookie = await desk.people.log_in(name, password, address_of(request))
    except TooManyTries as error:
        response = page(request, "login.html", "Log in", failed=str(error))
        response.status_code = 429
        return response
    if cookie is None:
        response = page(request, "login.html", "Log in", failed="this name and password do not fit")
        response.status_code = 401
        return response
    moved = RedirectResponse("/plans", 303)
    set_cookie(request, moved, cookie)
    return moved


@pages.post("/logout")
async def log_out(request: Request, desk: PageDesk) -> Response:
    """End the session of a browser."""
    desk.people.close_session(request.cookies.get(COOKIE, ""))
    response = Response(status_code=204)
    response.delete_cookie(COOKIE)
    return response


@pages.get("/")
async def start() -> Response:
    """What waits for a decision comes first."""
    return RedirectResponse("/plans", 303)


@pages.get("/plans")
async def plans(request: Request, desk: PageDesk) -> Response:
    """Plans that wait, then those that were decided."""
    now = time.time_ns()
    found = [summary_of(record) | _time_left(record, now) for record in await desk.store.plans.all(now=now)]
    waiting = [plan for plan in found if plan["state"] == "awaiting_approval"]
    decided = [plan for plan in found if plan["state"] != "awaiting_approval"]
    return page(request, "plans.html", "Plans", waiting=waiting, decided=decided)


@pages.get("/plans/{plan}")
async def plan_page(request: Request, plan: str, desk: PageDesk, run: RunQuery = None) -> Response:
    """One plan with all that a decision needs."""
    now = time.time_ns()
    stored = await desk.plan(plan, run, now)
    return page(
        request,
        "plan.html",
        f"Plan {stored.record.plan_id}",
        plan=document_of(stored) | _time_left(stored.record, now),
        revisions=revision_changes(stored),
        decisions=[decision.shown for decision in stored.record.decisions],
        editable=_editable(stored),
    )


def _time_left(record: PlanRecord, now: int) -> dict[str, Any]:
    """Until a plan expires, s: by bars where its run trades, else by the clock."""
    return {"left_s": (record.expires_at - record.clock) // 10**9, "by_clock": record.clock == now}


def _editable(stored: StoredPlan) -> dict[int, dict[str, Any]]:
    """Numbers of each step that an edit may change, by step and field."""
    return {
        step["number"]: {
            name: value
            for name, value in step["action"].items()
            if isinstance(value, (int, float)) and not isinstance(value, bool)
        }
        for step in document_of(stored)["steps"]
    }


@pages.get("/runs")
async def runs(request: Request, desk: PageDesk, first: RunQuery = None, second: RunQuery = None) -> Response:
    """Every run, and what differs between two of them."""
    records = await desk.store.runs.all()
    compared, sketches = None, []
    if first and second:
        both = await desk.run(first), await desk.run(second)
        compared = await compare_runs(desk.store, *both)
        sketches = [await _equity(request, desk, record) for record in both]
    return page(
        request,
        "runs.html",
        "Runs",
        runs=[(run_list.document_of(record), record.document or {}) for record in reversed(records)],
        compared=compared,
        sketches=sketches,
        files=bar_files(desk.backtests.folder),
        backtests=[started.document() for started in desk.backtests.all()],
    )


async def _equity(request: Request, desk: Desk, record: "RunRecord") -> Markup:
    """The equity of a finished run as a picture, or why there is none."""
    if record.status != "finished" or record.mode == "guard":
        return escape(f"run {record.run_id} is {record.status}: its equity is drawn once it has finished")
    try:
        picture = await request.app.state.stored_picture(desk.store, record)
    except (NotReplayable, ConfigError) as error:
        return escape(str(error))
    return Markup(equity_sketch(picture.curves["equity"], float(picture.curve[0])))  # noqa: S704 - of numbers


@pages.get("/runs/{run}")
async def run_page(request: Request, run: str, desk: PageDesk) -> Response:
    """A run: its figures, its chart, and its decisions one by one."""
    record = await desk.run(run)
    shown = {"record": record, "document": record.document or {}, "bokeh": bokeh_scripts()}
    return page(request, "run_of_console.html", f"Run {record.run_id}", **shown)


@pages.get("/runs/{run}/reflections")
async def reflections_page(request: Request, run: str, desk: PageDesk) -> Response:
    """What the fast reflection found in a run, and how long it took."""
    record = await desk.run(run)
    found = await reflections_of(desk.store, record)
    return page(request, "reflections.html", f"Reflections of run {record.run_id}", record=record, **found)


@pages.get("/runs/{run}/lessons")
async def lessons_page(request: Request, run: str, desk: PageDesk) -> Response:
    """Versions of playbooks with their evidence, what runs in shadow, and the ledger of trials."""
    record = await desk.run(run)
    found = await document_of_run(desk.store, record, None, lambda _: None)
    ranges = list_ranges(await desk.store.trials.all())
    trials = [item for item in ranges if record.run_id in item["runs"]]
    title = f"Lessons of run {record.run_id}"
    return page(request, "lessons.html", title, record=record, versions=found["versions"], trials=trials)


@pages.get("/runs/{run}/reports")
async def reports_page(request: Request, run: str, desk: PageDesk) -> Response:
    """The slots of the slow loop and the reports of a run."""
    record = await desk.run(run)
    slots = (await list_slots(desk.store, record))["slots"]
    return page(request, "reports.html", f"Reports of run {record.run_id}", record=record, slots=slots)


@pages.get("/runs/{run}/page")
async def draw_run(request: Request, run: str, desk: PageDesk) -> Response:
    """The page of a run that is over, as `thinktwice page` writes it; its own policy names its scripts."""
    from worker.pages.run_page import run_html

    record = await desk.run(run)
    if record.status == "running":
        raise HTTPException(409, f"run {record.run_id} is under way: see /live?run={record.run_id}")
    try:
        picture = await request.app.state.stored_picture(desk.store, record)
    except (NotReplayable, ConfigError) as error:
        raise HTTPException(409, str(error)) from error
    policy = "frame-ancestors 'none'"
    return HTMLResponse(run_html(picture), headers={"content-security-policy": policy})


@pages.get("/runs/{run}/reports/{report}")
async def report_page(request: Request, run: str, report: str, desk: PageDesk) -> Response:
    """A report, as `thinktwice report --html` writes it."""
    from worker.pages.report_html import report_html

    record = await desk.run(run)
    entries = await _reports_up_to(desk, record, report)
    text = report_html(entries[-1], entries[:-1])
    return HTMLResponse(text, headers={"content-security-policy": "frame-ancestors 'none'"})


async def _reports_up_to(desk: Desk, record: "RunRecord", report: str) -> list[dict[str, Any]]:
    entries = await list_reports(desk.store, record.run_id)
    try:
        return entries[: find_position(entries, report, record.run_id) + 1]
    except ConfigError as error:
        raise HTTPException(404, str(error)) from error


@pages.get("/runs/{run}/reports/{report}/claims")
async def claims_page(request: Request, run: str, report: str, desk: PageDesk) -> Response:
    """The claims of a report, each with its rows, and how its texts were made."""
    record = await desk.run(run)
    entry = (await _reports_up_to(desk, record, report))[-1]
    return page(
        request,
        "claims.html",
        f"Claims of report {entry['report_id']}",
        record=record,
        entry=entry,
        making=await making_of(desk.store, record, entry["report_id"]),
    )


@pages.get("/runs/{run}/models")
async def models_page(request: Request, run: str, desk: PageDesk) -> Response:
    """What models were asked in a run, what they replied, and what it cost."""
    record = await desk.run(run)
    found = await questions_of(desk.store, record)
    return page(request, "models.html", f"Models of run {record.run_id}", record=record, **found)


@pages.get("/runs/{run}/why/{fill}")
async def why_page(request: Request, run: str, fill: str, desk: PageDesk) -> Response:
    """The chain from a fill back to what led to it."""
    record = await desk.run(run)
    root = await desk.why(record, fill)
    return page(request, "why.html", f"Why {fill}", record=record, root=root, times=shown_time)


@pages.get("/audit")
async def audit_page(request: Request, desk: PageDesk) -> Response:
    """Who decided what here."""
    return page(request, "audit.html", "Decisions", entries=await desk.store.console.audit())
