"""One error tree, sorted by who must act.

    ThinktwiceError
    |-- OperatorError            the person at the keyboard: exit code 2
    |   |-- ConfigError          a setting, an option, a playbook file
    |   |-- DataError            bars, a file, a request
    |   |-- CassetteMiss         a replay asked what was not recorded
    |   |-- ModelRefused         the first question to a model was turned away
    |   `-- ToolRefused          a tool was asked for what it cannot answer
    |-- StrategistError          whoever proposed
    |   |-- InvalidProposal      the proposal cannot be compiled or is incomplete
    |   |-- RuleError            a rule text is not a rule
    |   |-- FreezeRefused        no result or verdict for exactly this proposal and snapshot
    |   `-- OrderRefused         the guard lets no such order leave
    |-- InfrastructureError      a machine or a service; carries `retryable`
    |   |-- StoreError
    |   |-- ModelError
    |   `-- FeedError
    `-- InvariantViolation       us: a guarantee of this program did not hold

`ConfigError`, `DataError` and `RuleError` are a `ValueError` too, as scripts expect of bad input.
Messages name the value with `!r`, the limit, and the next step.
"""

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import ValidationError

SHOWN = 5  # names in a message


class ThinktwiceError(Exception):
    """Root of the tree; `context` carries ids for the journal and the log."""

    def __init__(self, message: str, **context: Any) -> None:
        super().__init__(message)
        self.context = context


class OperatorError(ThinktwiceError):
    """The operator gave something that cannot be used."""


class ConfigError(OperatorError, ValueError):
    """A setting, an option or a playbook file is wrong."""


class DataError(OperatorError, ValueError):
    """Bars, a data file or a request are wrong."""


class CassetteMiss(OperatorError):
    """A replay asked a model something that was not recorded; no tier may decide instead."""


class ModelRefused(OperatorError):
    """The first question of a run was turned away: key, address or model are wrong; no tier may decide on."""


class ToolRefused(OperatorError):
    """A tool was asked for what it cannot answer; its one sentence may be shown to whoever asked."""


class StrategistError(ThinktwiceError):
    """A proposal cannot be used; the strategist has to answer differently."""


class InvalidProposal(StrategistError):
    """The proposal is incomplete or cannot be compiled."""


class RuleError(StrategistError, ValueError):
    """A rule text does not parse, or names something that does not exist."""


class FreezeRefused(StrategistError):
    """A proposal without a passing reflection and an approving verdict for exactly its hashes."""


class OrderRefused(StrategistError):
    """The guard lets no such order leave; its one sentence may be shown to whoever sent it."""


class InfrastructureError(ThinktwiceError):
    """A machine or service failed; `retryable` says whether the same call may succeed later."""

    def __init__(self, message: str, *, retryable: bool = False, **context: Any) -> None:
        super().__init__(message, **context)
        self.retryable = retryable


class StoreError(InfrastructureError):
    """The store is locked, corrupt, away or not writable."""


class ModelError(InfrastructureError):
    """A language model failed, refused, or answered something that is not an answer."""


class FeedError(InfrastructureError):
    """A market feed failed."""


class InvariantViolation(ThinktwiceError):
    """A guarantee of this program did not hold: a bug, or a call went around the door."""


def nearest(name: str, known: Iterable[str], cutoff: float = 0.5) -> str:
    """` Did you mean 'x'?` for the closest known name whatever its case, else the empty string.

    Args:
        name: as written.
        known: names that there are.
        cutoff: how alike they must be, 0 to 1.
    """
    by_case = {spelt.casefold(): spelt for spelt in reversed(list(known))}
    close = difflib.get_close_matches(name.casefold(), list(by_case), n=1, cutoff=cutoff)
    return f" Did you mean {by_case[close[0]]!r}?" if close else ""


def the_one(what: str, prefix: str, names: Iterable[str], where: str, more: str) -> str:
    """The one of some names that starts so.

    Args:
        what: the names are of, such as `report`.
        prefix: as written.
        names: that there are.
        where: they are, such as `in run r0001`.
        more: the next step where none or several start so.

    Raises:
        ConfigError: none starts so, or several do.
    """
    found = [name for name in dict.fromkeys(names) if prefix and name.startswith(prefix)]
    if len(found) == 1:
        return found[0]
    if not found:
        raise ConfigError(f"no {what} {prefix!r} {where}: {more}")
    raise ConfigError(f"{what} {prefix!r} is not unique {where} ({', '.join(found[:SHOWN])}): {more}")


def first_fault(error: "ValidationError") -> str:
    """The first fault that pydantic found, in a line: where it lies, if that has a name, and what it is."""
    first = error.errors(include_url=False)[0]
    place = ".".join(map(str, first["loc"]))
    return f"{place}: {first['msg']}" if place else first["msg"]
