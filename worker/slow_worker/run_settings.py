"""The settings with which a worker reflects on a stored run."""

from functools import reduce
from typing import TYPE_CHECKING, Any

from schemas.errors import ConfigError
from schemas.settings import Settings
from worker.runs.stored_settings import stored_settings
from worker.settings import ResolvedSettings

if TYPE_CHECKING:
    from services.store import RunRecord


def reflecting_settings(record: "RunRecord", given: ResolvedSettings) -> Settings:
    """The run's settings, with what is given for `[high_level]` in their place.

    Raises:
        ConfigError: a value that is given for another section is not the run's.
    """
    stored = stored_settings(record)
    changed: dict[str, Any] = {}
    for key, origin in given.origins.items():
        section, _, name = key.partition(".")
        value, made_with = (reduce(getattr, key.split("."), tree) for tree in (given.settings, stored))
        if section == "high_level":
            changed[name] = value
        elif section != "runtime" and value != made_with:
            raise ConfigError(
                f"{key} is {value!r} ({origin}) and run {record.run_id} was made with {made_with!r}: only "
                "[high_level] may differ; name another run with --run"
            )
    return stored.model_copy(update={"high_level": stored.high_level.model_copy(update=changed)})
