"""Orders that are posted to the endpoint of a guard: one JSON object in, the verdict out."""

import json
import time
from typing import Any

from starlette.responses import JSONResponse

from schemas.errors import DataError, OperatorError, OrderRefused, StoreError, nearest
from services.guard.desk import GuardDesk
from services.guard.reading import read_account, read_order
from services.model_calls.quoting import visible
from worker.operations.status import ProcessStatus

FIELDS = ("order", "account", "why", "spend")


class OrderChecks:
    """Answers from one guard, whose process this is."""

    def __init__(self, desk: GuardDesk, owner: str) -> None:
        self._desk, self._owner, self._started, self._errors = desk, owner, time.time_ns(), 0
        self._outcomes: dict[str, int] = {}

    async def answer(self, body: bytes) -> JSONResponse:
        """The verdict on the order of a body, with `send`, whether it may be sent; else one line of error."""
        try:
            verdict = await self._check(_read(body))
        except OrderRefused as refused:
            return JSONResponse({"error": visible(str(refused))}, 409)
        except OperatorError as error:
            return JSONResponse({"error": visible(str(error))}, 400)
        except StoreError:
            self._errors += 1
            return JSONResponse({"error": "the guard cannot record it, so nothing may be sent"}, 503)
        return JSONResponse(verdict)

    async def _check(self, given: dict[str, Any]) -> dict[str, Any]:
        order, account = read_order(given.get("order"), {}), read_account(given.get("account"))
        verdict = await self._desk.check(order, account, why=str(given.get("why") or ""))
        self._outcomes[verdict.status] = self._outcomes.get(verdict.status, 0) + 1
        if given.get("spend") is True and verdict:
            await self._desk.spend(verdict.id, order)
        return {"send": bool(verdict), **verdict.payload()}

    def status(self) -> ProcessStatus:
        """As the endpoint tells it."""
        return ProcessStatus(
            self._desk.run_id, "guard", "guard", self._owner, self._started,
            errors=self._errors, evaluations=dict(self._outcomes),
            kill_switch=self._desk.settings.envelope.kill_switch,
        )  # fmt: skip


def _read(body: bytes) -> dict[str, Any]:
    try:
        given = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise DataError(f"the body is no JSON: {error}") from error
    if not isinstance(given, dict) or "order" not in given:
        raise DataError("the body is an object with `order`, and perhaps `account`, `why` and `spend`")
    for name in given.keys() - set(FIELDS):
        raise DataError(
            f"{name!r} is no part of a check: there are {', '.join(FIELDS)}.{nearest(name, FIELDS)}"
        )
    return given
