"""The settings of a stored run, as this version reads them; whether this version made it."""

from typing import TYPE_CHECKING

from pydantic import ValidationError

from schemas.errors import ConfigError, first_fault
from schemas.settings import Settings
from worker.operations.environment import PROGRAM, environment

if TYPE_CHECKING:
    from services.store import RunRecord


class SettingsOfAnotherVersion(ConfigError):
    """A run was stored with settings that this version does not know, or takes otherwise."""


def stored_settings(record: "RunRecord") -> Settings:
    """The settings of a stored run.

    Raises:
        SettingsOfAnotherVersion: they no longer fit.
        ConfigError: they are not what the run recorded as hashed, and this version recorded it.
    """
    try:
        settings = Settings.model_validate(record.config)
    except ValidationError as error:
        raise SettingsOfAnotherVersion(
            f"the stored configuration of {record.run_id} does not fit this version "
            f"({first_fault(error)}): use the version that made it"
        ) from error
    if settings.config_hash == record.config_hash:
        return settings
    hashes = f"hashes to {settings.config_hash[:16]}, recorded was {record.config_hash[:16]}"
    if is_of_this_version(record):
        raise ConfigError(f"the stored configuration of {record.run_id} {hashes}: it was changed")
    raise SettingsOfAnotherVersion(
        f"the stored configuration of {record.run_id} {hashes}: use the version that made it, "
        f"{record.environment.get(PROGRAM)}"
    )


def is_of_this_version(record: "RunRecord") -> bool:
    """Whether this version of the program made a run, so that its document has today's figures."""
    return record.environment.get(PROGRAM) == environment()[PROGRAM]
