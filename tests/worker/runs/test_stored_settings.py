"""The settings of stored runs, where this version has others."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from schemas.settings import Settings
from worker.runs.replay import SettingsOfAnotherVersion, stored_settings

SETTINGS = Settings()


def record(**exchange: object) -> Any:
    config = SETTINGS.payload()
    config["runtime"]["feed"]["exchange"] |= exchange
    return cast(Any, SimpleNamespace(run_id="r", config=config, config_hash=SETTINGS.config_hash))


def test_run_that_was_stored_with_the_websocket_of_an_exchange_feed_is_read_without_it() -> None:
    stored = record(websocket=True, ws_url=None, silence_s=120.0)
    assert stored_settings(stored) == SETTINGS
    assert stored.config["runtime"]["feed"]["exchange"]["silence_s"] == 120.0, "the record stays as it is"


def test_run_with_a_setting_that_nobody_knows_is_of_another_version() -> None:
    with pytest.raises(SettingsOfAnotherVersion, match=r"runtime\.feed\.exchange\.carrier_pigeon"):
        stored_settings(record(carrier_pigeon=True))
