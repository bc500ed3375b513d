"""A process that may not open another file: one line that names the limit, whoever ran into it.

Libraries wrap the refusal in errors of their own, or fail later for want of what they could not load. So
under a limit that no command can work with, an unexpected error is told as what it comes from.
"""

import errno
import os
from collections.abc import Iterator

REFUSED = frozenset({errno.EMFILE, errno.ENFILE})
NEEDED = 64


def too_few_files(error: BaseException) -> str | None:
    """What to say of an unexpected failure for want of open files; None for any other failure."""
    return describe_limit() if is_refused(error) or limit() < NEEDED else None


def describe_limit() -> str:
    """What the limit is, and how it is raised."""
    return (
        f"too many open files: this process may have {limit()} open, and a command needs {NEEDED}; raise the "
        "limit with `ulimit -n 1024` (LimitNOFILE= of a service, ulimits of a container) and start again"
    )


def is_refused(error: BaseException) -> bool:
    """Whether a failure, or what it came from, is the refusal of another open file."""
    return any(isinstance(cause, OSError) and cause.errno in REFUSED for cause in chain_of(error))


def limit() -> int:
    """How many files this process may have open at once; asked without opening one."""
    return os.sysconf("SC_OPEN_MAX") if hasattr(os, "sysconf") else NEEDED


def chain_of(error: BaseException | None) -> Iterator[BaseException]:
    """The failure, what it wraps, and what it came from, the nearest first."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = getattr(error, "orig", None) or error.__cause__ or error.__context__
