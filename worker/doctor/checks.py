"""Findings of the doctor, and how its checks are run: one after another, none ends the others."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from typing import Literal

from schemas.errors import ThinktwiceError
from schemas.settings import Settings

State = Literal["ok", "warning", "failed"]


@dataclass(frozen=True)
class Finding:
    """What was found about one thing, and what to do about it; nothing to do when it is ok.

    A check leaves `name` out: `run_checks` gives its own.
    """

    name: str
    state: State
    found: str
    next_step: str | None = None


def ok(found: str) -> Finding:
    """Nothing to do."""
    return Finding("", "ok", found)


def warn(found: str, next_step: str) -> Finding:
    """A run works, and something had better be done."""
    return Finding("", "warning", found, next_step)


def fail(found: str, next_step: str) -> Finding:
    """No run works before something is done."""
    return Finding("", "failed", found, next_step)


@dataclass(frozen=True)
class DoctorContext:
    """What is looked at."""

    settings: Settings
    environment: dict[str, str]  # of the process
    feed: str | None = None  # as `thinktwice paper --feed` takes it; None: none is looked at
    network: bool = False  # whether hosts other than the store's may be asked


Check = Callable[[DoctorContext], Awaitable[Finding]]


async def run_checks(patient: DoctorContext, checks: Iterable[Check]) -> list[Finding]:
    """One finding for each check, in their order and by their names; a check that raises has failed."""
    return [replace(await _run(check, patient), name=check.__name__) for check in checks]


async def _run(check: Check, patient: DoctorContext) -> Finding:
    try:
        return await check(patient)
    except ThinktwiceError as error:
        found, colon, step = str(error).rpartition(": ")
        return fail(found if colon else str(error), step if colon else "see the message")
    except Exception as error:  # noqa: BLE001 - a check that breaks is a finding, and others may say why
        return fail(f"{type(error).__name__}: {error}", "report this with the line above")
