"""The page of a run that trades: its process, symbols and why they may not enter, and rows of a journal."""

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from services.model_calls.quoting import visible
from worker.console.decisions import BREACH, RELEASED, halts_of
from worker.console.desk import Desk
from worker.console.pages import PageDesk, RunQuery, page, templates
from worker.review import run_status

if TYPE_CHECKING:
    from services.store import RunRecord

SHOWN_ROWS, MOST_HALTS = 200, 50
live_pages = APIRouter(include_in_schema=False)


@live_pages.get("/live")
async def live(request: Request, desk: PageDesk, run: RunQuery = None) -> Response:
    """The process of a run: positions, feed, safe mode, kill switch, and rows as they come."""
    records = [record for record in await desk.store.runs.all() if record.damage is None]
    traded = [record for record in records if record.mode in ("paper", "guard")]
    if run is None and not traded:
        return page(request, "live.html", "Live", record=None, runs=[], last=-1, rows=[])
    record = await desk.run(run) if run is not None else traded[-1]
    now = await _live_now(desk, record)
    rows = [row async for row in desk.rows(record, None, max(-1, record.events - 1 - SHOWN_ROWS))]
    return page(
        request,
        "live.html",
        f"Live: {record.run_id}",
        record=record,
        **now,
        runs=[known.run_id for known in records if known in traded or known.run_id == record.run_id],
        rows=rows[::-1],
        last=rows[-1]["seq"] if rows else -1,
    )


@live_pages.get("/live/now")
async def live_now(request: Request, desk: PageDesk, run: RunQuery = "latest") -> Response:
    """The part of the live page that says how the process is, drawn anew."""
    record = await desk.run(run or "latest")
    text = templates().get_template("live_now.html").render(await _live_now(desk, record), record=record)
    return HTMLResponse(text)


@live_pages.get("/runs/{run}/journal")
async def journal_page(
    request: Request,
    run: str,
    desk: PageDesk,
    after: Annotated[int, Query(ge=-1, le=2**53)] = -1,
    limit: Annotated[int, Query(ge=1, le=SHOWN_ROWS)] = 50,
) -> Response:
    """Rows of the journal behind a sequence number; one alone is shown whole."""
    record = await desk.run(run)
    shown: dict[str, Any] = {"record": record, "rows": [], "after": after, "limit": limit}
    async for row in desk.rows(record, None, after):
        shown["rows"].append(row)
        if len(shown["rows"]) == limit:
            break
    return page(request, "journal.html", f"Journal of run {record.run_id}", **shown)


async def _live_now(desk: Desk, record: "RunRecord") -> dict[str, Any]:
    """How the process of a run is, and each of its symbols."""
    status = await run_status.status_of(desk.store, record)
    signs = (status["process"] or {}).get("signs", {})
    positions, blocked = signs.get("open_positions") or {}, signs.get("blocked") or {}
    states, limits = signs.get("states") or {}, signs.get("limits") or ()
    ends = await desk.store.journal.last_before(record.run_id, (BREACH, RELEASED), record.events, MOST_HALTS)
    labels = signs.get("last_bars") or {}
    names = sorted({*(record.data.get("symbols") or ()), *labels, *positions, *blocked})
    shut = [(limit["symbol"], limit["limit"]) for limit in limits if limit["blocks"]]
    halts = [*dict.fromkeys((*halts_of(ends), *(limit for symbol, limit in shut if symbol is None)))]
    own = {name: [limit for symbol, limit in shut if symbol == name] for name in names}
    own |= {name: [*own[name], why] for name, why in blocked.items()}
    reasons = {name: ", ".join((*halts, *found)) for name, found in own.items()}
    symbols = [
        {
            "name": visible(name),
            "position": positions.get(name, 0.0),
            "state": states.get(name),
            "last_bar": labels.get(name),
            "entries": "STALE"
            if name in (signs.get("stale_symbols") or ())
            else "BLOCKED"
            if reasons[name]
            else "open",
            "reason": visible(reasons[name]),
        }
        for name in names
    ]
    alerts = [
        word
        for word, holds in {
            "safe_mode": signs.get("state") == "safe_mode",
            "stopping": signs.get("state") == "stopping",
            "ERROR": bool(signs.get("errors")),
            "BLOCKED": bool(halts),
            "STALE": bool(signs.get("stale_symbols")),
            "away": signs.get("feed_ok") is False or signs.get("store_ok") is False,
        }.items()
        if holds
    ]
    return {"status": status, "signs_of": signs, "symbols": symbols, "alerts": alerts, "limits": limits}
