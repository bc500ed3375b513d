"""What a check of the doctor says, and how checks are run: one after another, none ends the others."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from schemas.errors import ThinktwiceError
from schemas.settings import Settings

State = Literal["ok", "warning", "failed"]


@dataclass(frozen=True)
class Finding:
    """What was found about one thing, and what to do about it; nothing to do when it is ok."""

    name: str
    state: State
    found: str
    next_step: str | None = None


@dataclass(frozen=True)
class DoctorContext:
    """What is looked at.

    Attributes:
        settings: in force.
        config: file they come from.
        environment: of the process.
        feed: as `thinktwice paper --feed` takes it; None: none is looked at.
        network: whether hosts other than the store's may be asked.
    """

    settings: Settings
    config: Path | None
    environment: dict[str, str]
    feed: str | None = None
    network: bool = False


Check = Callable[[DoctorContext], Awaitable[Finding]]


async def run_checks(patient: DoctorContext, checks: dict[str, Check]) -> list[Finding]:
    """One finding for each check, in their order; a check that raises has failed."""
    return [await _run(name, check, patient) for name, check in checks.items()]


async def _run(name: str, check: Check, patient: DoctorContext) -> Finding:
    try:
        return await check(patient)
    except ThinktwiceError as error:
        found, colon, step = str(error).rpartition(": ")
        return Finding(name, "failed", found if colon else str(error), step if colon else "see the message")
    except Exception as error:  # noqa: BLE001 - a check that breaks is a finding, and others may say why
        return Finding(name, "failed", f"{type(error).__name__}: {error}", "report this with the line above")
