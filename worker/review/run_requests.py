"""What is asked of a run: of one that goes on its process, of one that is over a folder of playbooks."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schemas.errors import ConfigError
from services.model_calls.quoting import visible
from worker.review.plan_making import PlanRequest
from worker.runs.stored_settings import stored_settings

if TYPE_CHECKING:
    from services.store import RunRecord, Store
    from services.store.operator_requests import RequestKind

PAPER = "paper"


def takes_requests(record: "RunRecord") -> bool:
    """Whether a process trades this run and is to be asked; a backtest that goes on is refused.

    Raises:
        ConfigError: a run of another mode is under way, or was left behind without an end.
    """
    if record.status != "running":
        return False
    if record.mode == PAPER:
        return True
    raise ConfigError(
        f"run {record.run_id} is a {record.mode} under way, or one that was killed: wait for its end, or "
        "name a run that is over (`thinktwice runs`)"
    )


def will_go_on(record: "RunRecord") -> bool:
    """Whether a run that was interrupted trades again when its command is given again."""
    return record.mode == PAPER and record.status == "interrupted"


def plan_request(record: "RunRecord", into: Path | None, by: str) -> PlanRequest:
    """What is to be planned of a run for an operator: by the process that trades it, or into a folder.

    Raises:
        ConfigError: the run makes no plans; it is over and `into` is no place, or it trades and `into` is.
    """
    from services.playbooks.writing import demand_writable

    settings = stored_settings(record)
    trades = takes_requests(record) or (will_go_on(record) and into is None)
    if not settings.plans.enabled:
        raise ConfigError(
            f"run {record.run_id} makes no plans (plans.enabled): turn it on and begin another run"
        )
    if trades and into is not None:
        raise ConfigError(f"run {record.run_id} trades: its playbooks change in it; leave out --into")
    if not trades and into is None:
        raise ConfigError(f"run {record.run_id} is over: --into DIR says where its playbooks are written")
    if into is not None:
        if visible(str(into)) != str(into):
            raise ConfigError(
                f"--into {str(into)!r} holds characters that cannot be seen: name another folder"
            )
        demand_writable(into, "--into")
    return PlanRequest(record, settings, trades, into, by)


async def queue_request(
    store: "Store", record: "RunRecord", kind: "RequestKind", payload: dict[str, Any]
) -> dict[str, Any]:
    """Ask the process that trades a run; the request with its number, and where its result will show."""
    number = await store.operator.put(record.run_id, kind, payload)
    return {
        "run_id": record.run_id,
        "request": number,
        "kind": kind,
        "payload": payload,
        "result": f"thinktwice requests {record.run_id}",
    }


def describe_request(request: Mapping[str, Any]) -> str:
    """A queued request in one line."""
    return (
        f"request {request['request']} ({request['kind']}) waits for run {request['run_id']}: "
        f"it is taken at the next bar close, its result shows in `{request['result']}`"
    )
