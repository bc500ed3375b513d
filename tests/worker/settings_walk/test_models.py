"""Every setting of the language models does something: changed, they are asked otherwise."""

from pathlib import Path

import pytest

from schemas.settings import Settings
from tests.worker.settings_walk.models import MODELS
from tests.worker.settings_walk.walking import looks, sees_change, sees_the_same


@pytest.fixture(autouse=True)
def _one_name_for_all_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, over_the_cap: None) -> None:
    """The hash of the settings is part of ids; here it must not pass for something that they do."""
    monkeypatch.setattr(Settings, "config_hash", "0" * 64)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("key", MODELS)
def test_setting_that_is_changed_changes_what_is_seen(key: str) -> None:
    entry = MODELS[key]
    assert sees_change(key, entry), f"{key} = {entry.value!r} changed nothing"


@pytest.mark.parametrize("key", looks(MODELS))
def test_look_at_the_same_settings_sees_the_same(key: str) -> None:
    assert sees_the_same(MODELS[key])
