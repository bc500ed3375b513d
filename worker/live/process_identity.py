"""Which process it was, so that a later one can say whether that process is gone.

A number alone is not enough: numbers are used again, and in a container every process that starts gets the
same one. What the system says of when a process began tells them apart.
"""

import os
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any

UNKNOWN = ""
ZOMBIE = "Z"


@dataclass(frozen=True)
class ProcessIdentity:
    """A process of a machine; `born` differs between processes of one number, and is empty if unknown."""

    host: str
    pid: int
    born: str

    @classmethod
    def own(cls) -> "ProcessIdentity":
        """The present process."""
        return cls(platform.node(), os.getpid(), _born(os.getpid()) or UNKNOWN)

    @classmethod
    def read(cls, values: dict[str, Any]) -> "ProcessIdentity":
        """One that was written down.

        Raises:
            ValueError: it names no process.
            KeyError: a field is missing.
        """
        host, pid, born = values["host"], values["pid"], values["born"]
        if type(pid) is not int or pid <= 0 or not isinstance(host, str) or not isinstance(born, str):
            raise ValueError(f"{values!r} names no process")
        return cls(host, pid, born)


def is_gone(process: ProcessIdentity) -> bool:
    """Whether a process of this machine has ended; of another machine's nothing is known, so it has not."""
    if process.host != platform.node():
        return False
    born = _born(process.pid)
    if born is None:
        return True
    return UNKNOWN not in (born, process.born) and born != process.born


def _born(pid: int) -> str | None:
    """When a process began, as the system counts; None when there is none, empty when it cannot say."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return None
    except PermissionError:
        pass
    try:
        # The name in brackets may hold anything; state and start are the 3rd and 22nd field.
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return UNKNOWN
    return None if fields[0] == ZOMBIE else f"{boot} {fields[19]}"
