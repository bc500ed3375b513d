"""Orders that are posted to the endpoint of a guard: one JSON object in, the verdict out."""

import asyncio
import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse

from schemas.errors import DataError, OperatorError, StoreError
from schemas.guard import Order, OrderCheck, Verdict
from services.guard.desk import GuardDesk
from services.guard.reading import attempt, drop_mark, read_contract, read_held
from services.guard.verdicts import make_unrecorded
from services.model_calls.quoting import visible
from worker.operations.endpoint import CHECK_S
from worker.operations.status import ProcessStatus

if TYPE_CHECKING:
    from trading_core.bars import BarSeries


class OrderChecks:
    """Answers from one guard, whose process this is."""

    def __init__(self, desk: GuardDesk) -> None:
        self._desk, self._started, self._errors = desk, time.time_ns(), 0
        self._outcomes: dict[str, int] = {}

    async def answer(self, body: bytes) -> JSONResponse:
        """The verdict on the order of a body, with `send`, whether it may be sent; else one line of error."""
        try:
            verdict = await self.check(await asyncio.to_thread(_read, body))
        except OperatorError as error:
            return JSONResponse({"error": visible(str(error))}, 400)
        except StoreError as error:
            return JSONResponse({"error": str(error)}, 503)
        return JSONResponse(verdict)

    async def check(self, given: Any) -> dict[str, Any]:
        """The verdict as plain data, with `send`; it is spent where that is asked for.

        Raises:
            DataError: what is given is no `OrderCheck`.
            StoreError: it cannot be recorded in time, and the guard refuses.
        """
        fields = given if isinstance(given, dict) else {}
        named = {name: fields[name] for name in ("order",) if name in fields}
        order = drop_mark(read_contract(OrderCheck, named, "check", DataError).order)
        try:
            async with asyncio.timeout(CHECK_S):
                verdict = await self._check(order, fields)
        except (StoreError, TimeoutError) as error:
            self._errors += 1
            text = "the guard cannot record it, so nothing may be sent"
            if self._desk.mode == "enforce":
                raise StoreError(text) from error
            verdict = make_unrecorded(order, text, time.time_ns())
        self._outcomes[verdict.status] = self._outcomes.get(verdict.status, 0) + 1
        return {"send": bool(verdict), **verdict.payload()}

    async def _check(self, order: Order, fields: dict[str, Any]) -> Verdict:
        """The verdict; what is wrong beside the order keeps no exit."""
        failures = list[Exception]()
        rest = {**fields, "order": order, "account": None, "bars": None}
        request = attempt(lambda: read_contract(OrderCheck, rest, "check", DataError), failures)
        held = read_held(fields.get("account"), order.symbol, failures)
        rows, bars = fields.get("bars"), None
        if rows:
            bars = await asyncio.to_thread(attempt, lambda: _read_bars(rows, order), failures)
        why, spend = ("", fields.get("spend") is True) if request is None else (request.why, request.spend)
        return await self._desk.check(order, held, bars=bars, why=why, failures=failures, spend=spend)

    async def refresh(self) -> None:
        """Look at what other processes wrote; where the store is away, nothing is new."""
        with suppress(StoreError):
            await self._desk.read(lambda ledger: None)

    def status(self) -> ProcessStatus:
        """As the endpoint tells it."""
        return ProcessStatus(
            self._desk.run_id, "guard", "guard", f"guard:{os.getpid()}", self._started,
            errors=self._errors, evaluations=dict(self._outcomes),
            kill_switch=self._desk.settings.envelope.kill_switch or self._desk.ledger.killed,
        )  # fmt: skip


async def warm_up(desk: GuardDesk, make_ready: Callable[[], None]) -> None:
    """Make ready, beside the loop, what reads bars; an engine without an image takes up to a minute."""
    rows = [
        {"t": 10**9 + hour * 3_600, "o": 9.0, "h": 11.0, "l": 8.0, "c": 9.0 + hour % 3} for hour in range(40)
    ]
    order = Order(symbol="-", side="buy", quantity=1.0)
    await asyncio.to_thread(make_ready)
    await desk.warm_up(await asyncio.to_thread(_read_bars, rows, order))


def _read_bars(rows: Any, order: Order) -> "BarSeries":
    import pandas as pd

    from worker.feeds.files.bar_table import BarTable
    from worker.feeds.files.files import bars_of_tables
    from worker.feeds.files.symbol_rows import Selection

    request = read_contract(OrderCheck, {"order": order, "bars": rows}, "check", DataError)
    frame = pd.DataFrame([row.payload() for row in request.bars or ()]).dropna(axis=1, how="all")
    return bars_of_tables([(BarTable.of_frame(frame), order.symbol)], Selection())


def _read(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise DataError(f"the body is no JSON: {error}") from error
