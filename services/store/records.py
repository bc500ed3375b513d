"""What the store knows about a run, as plain frozen records."""

from dataclasses import dataclass
from typing import Any, Literal

RunStatus = Literal["running", "finished", "interrupted", "failed"]


@dataclass(frozen=True)
class NewRun:
    """A run about to start.

    Attributes:
        name: what the operator would call it: the config file's name, or `embedded`.
        created_at: wall clock, ns.
        mode: `backtest`; never hashed.
        config_hash: hash of everything but `runtime`.
        config: the whole resolved configuration, passwords masked.
        data: source, sha256, symbols, timeframe, label, bars, start and end of the bars.
        environment: python, packages and platform.
    """

    name: str
    created_at: int
    mode: str
    config_hash: str
    config: dict[str, Any]
    data: dict[str, Any]
    environment: dict[str, Any]


@dataclass(frozen=True)
class RunRecord(NewRun):
    """A stored run. `events` and `head_hash` agree with the journal rows: one transaction writes both.

    `damage` says which part of the row cannot be read and what to do; that part is empty then.
    """

    run_id: str
    number: int
    status: RunStatus
    events: int
    head_hash: str
    document: dict[str, Any] | None
    damage: str | None = None

    @property
    def ended_early(self) -> dict[str, str] | None:
        """Why its bars were not all traded: `reason` and `message`; None of any other run."""
        found = (self.document or {}).get("ended_early")
        return found if isinstance(found, dict) and {"reason", "message"} <= found.keys() else None


@dataclass(frozen=True)
class Closing:
    """How a run ends for now: interrupted, or finished with its document."""

    status: RunStatus
    document: dict[str, Any] | None = None
