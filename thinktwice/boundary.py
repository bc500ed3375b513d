"""Where a script calls the library: its errors show the line of the script and one frame of ours."""

import functools
import logging
import sysconfig
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import ParamSpec, TypeVar

from schemas.errors import InvariantViolation, ThinktwiceError

LOG = logging.getLogger(__name__)
ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("agents", "prompts", "schemas", "services", "thinktwice", "trading_core", "worker")
INSTALLED = (
    *(f"{ROOT / room}/" for room in ROOMS),
    *(f"{sysconfig.get_path(name)}/" for name in ("stdlib", "platstdlib", "purelib", "platlib")),
    "<frozen ",
)
Given = ParamSpec("Given")
Answer = TypeVar("Answer")


def trims_errors(function: Callable[Given, Answer]) -> Callable[Given, Answer]:
    """The function, whose errors name what is wrong without the frames that found it.

    What the script itself raised, in a part or a callback, keeps its frames; so does a bug of ours. The log
    `thinktwice.boundary` has the whole at level debug.
    """

    @functools.wraps(function)
    def call(*args: Given.args, **kwargs: Given.kwargs) -> Answer:
        try:
            return function(*args, **kwargs)
        except ThinktwiceError as error:
            if isinstance(error, InvariantViolation) or _is_of_script(error):
                raise
            LOG.debug("raised by %s", function.__name__, exc_info=True)
            cause = error.__cause__
            raise error.with_traceback(None) from cause if cause and _is_of_script(cause) else None

    return call


def _is_of_script(error: BaseException) -> bool:
    """Whether an error was raised by neither this program nor what is installed with it."""
    place = _find_place(error.__traceback__)
    return place is not None and not place.startswith(INSTALLED)


def _find_place(trace: TracebackType | None) -> str | None:
    """The file in which an error was raised."""
    place = None
    while trace is not None:
        place, trace = trace.tb_frame.f_code.co_filename, trace.tb_next
    return place
