"""The console as an application: guards before everything, the API, the pages, and what draws them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bokeh.util.paths import static_path
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.staticfiles import StaticFiles

from schemas.errors import StoreError
from worker.console.api import api
from worker.console.ask_pages import ask_pages
from worker.console.backtests import Backtests
from worker.console.chart import Charts
from worker.console.desk import Desk
from worker.console.guards import Address, ConsoleGuard, wants_page
from worker.console.live_pages import live_pages
from worker.console.pages import error_page, pages
from worker.console.people import People
from worker.console.plan_routes import plan_routes
from worker.console.text_routes import texts
from worker.operations.endpoint_access import is_loopback
from worker.review.rebuilt import stored_picture, traded_bars
from worker.runs.kept_run import kept_bars

if TYPE_CHECKING:
    from schemas.settings import Settings
    from services.store import Store

STATIC = Path(__file__).parent / "static"
TITLE = "thinktwice console"
Answer = Callable[[Request], Awaitable[Response]]
MOST_OF_INPUT = 80  # characters of a refused value that are shown
PROCESS_PATHS = ("/health", "/ready", "/metrics", "/status")


@asynccontextmanager
async def console_app(
    store: "Store",
    settings: "Settings",
    address: Address,
    environment: Mapping[str, str],
    process: Answer | None = None,
) -> AsyncIterator[FastAPI]:
    """The application over an open store; backtests that it started end with it.

    `process` answers what is asked of the process in which the console runs; None where it runs alone.
    """
    folder = None if settings.runtime.console.folder is None else Path(settings.runtime.console.folder)
    backtests = Backtests(settings.runtime.db, folder)
    people = People(
        store.console, local=is_loopback(address.host) and not address.secure, secret=address.secret
    )
    desk = Desk(store, settings, people, backtests, environment)
    app = FastAPI(
        title=TITLE,
        version="1",
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
        middleware=[Middleware(ConsoleGuard, people=people, address=address)],
        exception_handlers={
            HTTPException: _refuse,
            RequestValidationError: _refuse_input,
            StoreError: _tell_of_store,
        },
    )
    app.state.stored_picture = stored_picture
    app.state.charts = Charts(traded_bars, kept_bars)
    app.state.desk, app.state.address = desk, address
    app.include_router(api)
    app.include_router(plan_routes)
    app.include_router(texts)
    app.include_router(pages)
    app.include_router(live_pages)
    app.include_router(ask_pages)
    if process is not None:
        app.router.routes += [Route(path, process) for path in PROCESS_PATHS]
    app.mount("/static/bokeh", StaticFiles(directory=Path(static_path()) / "js"))
    app.mount("/static", StaticFiles(directory=STATIC))
    await asyncio.to_thread(_import_readers)  # not beside the first requests: they import parts of the same
    try:
        yield app
    finally:
        desk.end()
        await backtests.close()


def _import_readers() -> None:
    """Import what reads bar files before the first request: it takes longer than a chart may."""
    from worker.feeds.files import files  # noqa: F401


async def _refuse(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - it was registered for these
    if wants_page(request):
        return error_page(request, error.status_code, str(error.detail))
    return JSONResponse({"error": error.detail}, error.status_code, error.headers)


async def _refuse_input(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101 - it was registered for these
    found = [
        f"{'.'.join(map(str, item['loc']))} {str(item['input'])[:MOST_OF_INPUT]!r}: {item['msg']}"
        for item in error.errors()
    ]
    text = "; ".join(found)[:4_000]
    return error_page(request, 422, text) if wants_page(request) else JSONResponse({"error": text}, 422)


async def _tell_of_store(request: Request, error: Exception) -> Response:
    if wants_page(request):
        return error_page(request, 503, str(error))
    return JSONResponse({"error": str(error)}, 503)
