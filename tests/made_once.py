"""What takes seconds to make and is only read: made by the first process of a test session that wants it."""

import fcntl
from collections.abc import Callable
from pathlib import Path

FOLDERS: list[Path] = []  # of the session, shared by its processes: tests/conftest.py


def read_made(name: str, make: Callable[[], bytes]) -> bytes:
    """The bytes of a name, which the processes of a session make once; the others wait for them."""
    (folder,) = FOLDERS
    made = folder / name
    with (folder / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            content = make()
            begun = folder / f"{name}.begun"  # no other process reads half of it after a crash
            begun.write_bytes(content)
            begun.rename(made)
        return made.read_bytes()
