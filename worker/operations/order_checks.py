"""Orders that are posted to the endpoint of a guard: one JSON object in, the verdict out."""

import json
import os
import time
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse

from schemas.errors import DataError, OperatorError, OrderRefused, StoreError
from schemas.guard import OrderCheck
from services.guard.desk import GuardDesk
from services.guard.reading import attempt, read_contract, read_held
from services.model_calls.quoting import visible
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
            verdict = await self.check(_read(body))
        except OrderRefused as refused:
            return JSONResponse({"error": visible(str(refused))}, 409)
        except OperatorError as error:
            return JSONResponse({"error": visible(str(error))}, 400)
        except StoreError:
            self._errors += 1
            return JSONResponse({"error": "the guard cannot record it, so nothing may be sent"}, 503)
        return JSONResponse(verdict)

    async def check(self, given: Any) -> dict[str, Any]:
        """The verdict as plain data, with `send`; it is spent where that is asked for.

        Raises:
            DataError: what is given is no `OrderCheck`.
            OrderRefused: the verdict cannot be spent.
            StoreError: it cannot be recorded.
        """
        fields = given if isinstance(given, dict) else {}
        asked = read_contract(OrderCheck, {**fields, "account": None, "bars": None}, "check", DataError)
        failures = list[Exception]()
        held = read_held(fields.get("account"), asked.order.symbol, failures)
        bars = attempt(lambda: _read_bars(fields, asked.order.symbol), failures)
        verdict = await self._desk.check(asked.order, held, bars=bars, why=asked.why, failures=failures)
        self._outcomes[verdict.status] = self._outcomes.get(verdict.status, 0) + 1
        if asked.spend and verdict:
            await self._desk.spend(verdict.id, asked.order)
        return {"send": bool(verdict), **verdict.payload()}

    def status(self) -> ProcessStatus:
        """As the endpoint tells it."""
        return ProcessStatus(
            self._desk.run_id, "guard", "guard", f"guard:{os.getpid()}", self._started,
            errors=self._errors, evaluations=dict(self._outcomes),
            kill_switch=self._desk.settings.envelope.kill_switch or self._desk.ledger.killed,
        )  # fmt: skip


def _read_bars(fields: dict[str, Any], symbol: str) -> "BarSeries | None":
    if not fields.get("bars"):
        return None
    import pandas as pd

    from worker.feeds.files.bar_table import BarTable
    from worker.feeds.files.files import bars_of_tables
    from worker.feeds.files.symbol_rows import Selection

    asked = read_contract(OrderCheck, {**fields, "account": None}, "check", DataError)
    frame = pd.DataFrame([row.payload() for row in asked.bars or ()]).dropna(axis=1, how="all")
    return bars_of_tables([(BarTable.of_frame(frame), symbol)], Selection())


def _read(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise DataError(f"the body is no JSON: {error}") from error
