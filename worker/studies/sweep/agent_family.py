"""Sets of whole runs of the agent: settings, and parameters of playbooks, with values from a grid."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from schemas.canonical import content_id
from schemas.errors import ConfigError, nearest
from schemas.playbook import PlaybookDefinition
from schemas.settings import Settings
from services.playbooks.loader import explain
from worker.settings import FIELDS
from worker.studies.executors.agent_runs import agent_settings
from worker.studies.sweep.sets import Family, Grid


@dataclass(frozen=True)
class AgentFamily(Family):
    """A configuration whose settings and playbook parameters take values from a grid.

    Names are settings, `execution.fee_bps`, or `PLAYBOOK.PARAMETER`; `__` stands for the dot in Python.

    Attributes:
        base: what every set has.
        books: playbooks of every set.
    """

    base: Settings = field(default_factory=Settings)
    books: tuple[PlaybookDefinition, ...] = ()

    @classmethod
    def of(
        cls, base: Settings, books: Sequence[PlaybookDefinition], grid: Grid, draws: int | None
    ) -> "AgentFamily":
        """The family; `draws` sets are drawn by the seed of the settings, None: all.

        Raises:
            ConfigError: a name that is neither a setting nor a parameter, or a value that does not fit.
        """
        agent_settings(base, {})  # what no set could be is said once
        named = {name.replace("__", "."): values for name, values in grid.items()}
        terms = {"settings": base.config_hash, "playbooks": content_id([book.payload() for book in books])}
        return cls(terms, named, draws=draws, seed=base.seed, base=base, books=tuple(books))

    def __post_init__(self) -> None:
        known = {*FIELDS, *(f"{book.id}.{name}" for book in self.books for name in book.parameters)}
        for name in self.grid:
            if name not in known:
                raise ConfigError(
                    f"grid: {name!r} is no setting and no parameter of a playbook.{nearest(name, known)}"
                )
        self.check_values()

    def set_of(self, point: Mapping[str, Any]) -> dict[str, Any]:
        """A set as `SweepTasks.of_runs` takes it.

        Raises:
            ConfigError: a value does not fit.
        """
        changes = {name: value for name, value in point.items() if name in FIELDS}
        return {
            "settings": agent_settings(self.base, changes),
            "playbooks": tuple(_change(book, point) for book in self.books),
        }


def _change(book: PlaybookDefinition, point: Mapping[str, Any]) -> PlaybookDefinition:
    payload = book.payload()
    for name, parameter in payload["parameters"].items():
        parameter["value"] = point.get(f"{book.id}.{name}", parameter["value"])
    try:
        return PlaybookDefinition.model_validate(payload)
    except ValidationError as error:
        place, reason = explain(payload, error)
        raise ConfigError(f"grid: {book.id}, {place}: {reason}") from error
