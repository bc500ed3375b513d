"""Every setting of a decision does something: changed, it changes what a short run does."""

from pathlib import Path

import pytest

from schemas.settings import Settings
from tests.worker.settings_walk.decisions import DECISIONS
from tests.worker.settings_walk.walking import looks, seen_after, seen_before, sees_the_same


@pytest.fixture(autouse=True)
def _one_name_for_all_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The hash of the settings is part of ids; here it must not pass for something that they do."""
    monkeypatch.setattr(Settings, "config_hash", "0" * 64)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("key", DECISIONS)
def test_setting_that_is_changed_changes_what_is_seen(key: str) -> None:
    entry = DECISIONS[key]
    assert seen_after(key, entry) != seen_before(entry), f"{key} = {entry.value!r} changed nothing"


@pytest.mark.parametrize("key", looks(DECISIONS))
def test_look_at_the_same_settings_sees_the_same(key: str) -> None:
    assert sees_the_same(DECISIONS[key])
