"""The settings of stored runs, where this version has others."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from schemas.settings import Settings
from worker.runs.stored_settings import SettingsOfAnotherVersion, stored_settings

SETTINGS = Settings()


def record(**exchange: object) -> Any:
    config = SETTINGS.payload()
    config["runtime"]["feed"]["exchange"] |= exchange
    return cast(Any, SimpleNamespace(run_id="r", config=config, config_hash=SETTINGS.config_hash))


def test_run_with_a_setting_that_nobody_knows_is_of_another_version() -> None:
    with pytest.raises(SettingsOfAnotherVersion, match=r"runtime\.feed\.exchange\.carrier_pigeon"):
        stored_settings(record(carrier_pigeon=True))
