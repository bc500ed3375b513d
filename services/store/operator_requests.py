"""What an operator asks of a process that trades, numbered by run, and what the process answered.

A command line cannot reach into another process: it writes a request, the trading process takes what waits
at its next bar close and answers. Requests of a run are answered once, in the order of their numbers.
"""

import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import ColumnElement, Row, select, true, update

from schemas.canonical import canonical_json
from schemas.errors import ConfigError
from services.store.connections import AsyncConnection
from services.store.database_time import Dialect, now_ms
from services.store.repository import Repository
from services.store.tables import operator_requests, runs

ASKED_MODE = "paper"
RequestKind = Literal["kill_switch", "rollback", "replan", "plan", "rule_tried", "stop"]
Outcome = Literal["done", "refused"]
FIELDS: dict[RequestKind, dict[str, tuple[type, ...]]] = {
    "kill_switch": {"on": (bool,)},
    "rollback": {"playbook_id": (str,)},
    "replan": {"report_id": (str, type(None))},
    "plan": {
        "plan_id": (str,),
        "decision": (str,),
        "hash": (str,),
        "by": (str,),
        "plan": (dict, type(None)),
    },
    "rule_tried": {"trial": (int,), "rule": (str,)},
    "stop": {},
}


@dataclass(frozen=True)
class OperatorRequest:
    """One request.

    Attributes:
        run_id: whose process is asked.
        number: 1 and up within a run, in the order of asking.
        kind: what is asked.
        payload: kill_switch {on}, rollback {playbook_id}, replan {report_id or null}, stop {},
            plan {plan_id, decision (submit, approve, cancel, rollback), hash, by, plan (with the first two)},
            rule_tried {trial, rule}: number and name in the ledger of trials.
        state: waiting, done or refused.
        asked_ms: database time.
        answered_ms: database time; None while it waits.
        result: what the process said; None while it waits.
    """

    run_id: str
    number: int
    kind: RequestKind
    payload: dict[str, Any]
    state: Literal["waiting", "done", "refused"]
    asked_ms: int
    answered_ms: int | None
    result: dict[str, Any] | None


class OperatorRequests(Repository):
    """Queues requests and keeps their answers."""

    async def put(self, run_id: str, kind: RequestKind, payload: dict[str, Any]) -> int:
        """Number of the request in its run.

        Asking again what was asked last and still waits is no second request: the number stays.

        Raises:
            ConfigError: the payload is not one of this kind, there is no such run, or it is not running.
        """

        async def work(connection: AsyncConnection) -> int:
            await demand_running(connection, run_id)
            return await put_request(connection, self._url.dialect, run_id, kind, payload)

        return await self._run_write(work)

    async def waiting(self, run_id: str) -> list[OperatorRequest]:
        """Requests without an answer, in the order of their numbers."""
        return await self._find(_of(run_id) & (operator_requests.c.state == "waiting"))

    async def all(self, run_id: str) -> list[OperatorRequest]:
        """Every request to a run, in the order of their numbers."""
        return await self._find(_of(run_id))

    async def answer(self, run_id: str, number: int, outcome: Outcome, result: dict[str, Any]) -> bool:
        """Whether this is the request's answer; false when it was answered before, or never asked."""
        waits = (
            _of(run_id) & (operator_requests.c.number == number) & (operator_requests.c.state == "waiting")
        )
        values = {"state": outcome, "result": canonical_json(result)}
        answer = (
            update(operator_requests).where(waits).values(answered_ms=now_ms(self._url.dialect), **values)
        )
        changed = await self._run_write(lambda connection: connection.execute(answer))
        return changed.rowcount == 1

    async def _find(self, wanted: ColumnElement[bool]) -> list[OperatorRequest]:
        query = select(operator_requests).where(wanted).order_by(operator_requests.c.number)
        return [_request(row) for row in await self._select(query)]


async def put_request(
    connection: AsyncConnection, dialect: Dialect, run_id: str, kind: RequestKind, payload: dict[str, Any]
) -> int:
    """Queue a request inside a transaction of the caller's, who holds the run; see `OperatorRequests.put`.

    Raises:
        ConfigError: the payload is not one of this kind.
    """
    _demand_fields(kind, payload)
    text = canonical_json(payload)
    of_run = select(operator_requests).where(_of(run_id)).order_by(operator_requests.c.number.desc()).limit(1)
    newest = (await connection.execute(of_run)).one_or_none()
    if newest is not None and (newest.state, newest.kind, newest.payload) == ("waiting", kind, text):
        return int(newest.number)
    number = 1 if newest is None else int(newest.number) + 1
    row = {"run_id": run_id, "number": number, "kind": kind, "payload": text, "state": "waiting"}
    row["asked_ms"] = now_ms(dialect)
    await connection.execute(operator_requests.insert().values(row))
    return number


async def tell_of_rule(
    connection: AsyncConnection, dialect: Dialect, met: Collection[str], trial: int, rule: str
) -> None:
    """Tell the runs among `met` that are not over, and that take requests, that a rule was tried.

    Inside a transaction of the caller's.
    """
    goes_on = (runs.c.mode == ASKED_MODE) & runs.c.status.in_(("running", "interrupted"))
    wanted = select(runs.c.run_id).where(goes_on, runs.c.run_id.in_(met)).order_by(runs.c.number)
    for run_id in (await connection.execute(wanted.with_for_update())).scalars().all():
        await put_request(connection, dialect, run_id, "rule_tried", {"trial": trial, "rule": rule})


async def withdraw_plan(
    connection: AsyncConnection, dialect: Dialect, run_id: str, plan_id: str, reason: str
) -> None:
    """Answer the approvals of a plan that wait as refused, inside a transaction of the caller's."""
    waits = operator_requests.c.state == "waiting"
    numbers = await _requests_on(connection, run_id, plan_id, "approve", waits)
    shown = canonical_json({"plan_id": plan_id, "reasons": [reason]})
    values = {"state": "refused", "result": shown, "answered_ms": now_ms(dialect)}
    own = _of(run_id) & operator_requests.c.number.in_(numbers)
    await connection.execute(update(operator_requests).where(own).values(values))


async def plan_was_handed_in(connection: AsyncConnection, run_id: str, plan_id: str) -> bool:
    """Whether the process of a run was, or is to be, told of a plan that a command has made."""
    return bool(await _requests_on(connection, run_id, plan_id, "submit", true()))


async def _requests_on(
    connection: AsyncConnection, run_id: str, plan_id: str, decision: str, wanted: ColumnElement[bool]
) -> list[int]:
    """Numbers of the requests with a decision on a plan."""
    own = _of(run_id) & (operator_requests.c.kind == "plan") & wanted
    query = select(operator_requests.c.number, operator_requests.c.payload).where(own)
    found = [(number, json.loads(payload)) for number, payload in await connection.execute(query)]
    return [number for number, item in found if (item["plan_id"], item["decision"]) == (plan_id, decision)]


async def demand_running(connection: AsyncConnection, run_id: str) -> None:
    """The run's row stays locked: no second number at once, and no end of the run in between.

    Raises:
        ConfigError: it is not running, or there is none.
    """
    of_run = select(runs.c.status).where(runs.c.run_id == run_id).with_for_update()
    status = await connection.scalar(of_run)
    if status != "running":
        found = "there is no such run" if status is None else f"it is {status}"
        raise ConfigError(f"run {run_id!r} takes no requests, {found}: see `thinktwice runs`")


def _demand_fields(kind: RequestKind, payload: dict[str, Any]) -> None:
    fields = FIELDS.get(kind)
    if fields is None:
        raise ConfigError(f"no request {kind!r}: the kinds are {', '.join(FIELDS)}")
    fit = payload.keys() == fields.keys()
    if not fit or not all(isinstance(payload[name], kinds) for name, kinds in fields.items()):
        raise ConfigError(f"a {kind} request has the fields {sorted(fields)}, not {payload!r}")


def _of(run_id: str) -> ColumnElement[bool]:
    return operator_requests.c.run_id == run_id


def _request(row: Row[Any]) -> OperatorRequest:
    values = dict(row._mapping)
    values["payload"] = json.loads(values["payload"])
    values["result"] = None if values["result"] is None else json.loads(values["result"])
    return OperatorRequest(**values)
