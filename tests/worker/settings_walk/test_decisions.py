"""Every setting of a decision does something: changed, it changes what a short run does."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from schemas.settings import Settings
from tests.worker.settings_walk.decisions import DECISIONS
from tests.worker.settings_walk.walking import close_runs, looks, sees_change, sees_the_same


@pytest.fixture(autouse=True)
def _one_name_for_all_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The hash of the settings is part of ids; here it must not pass for something that they do."""
    monkeypatch.setattr(Settings, "config_hash", "0" * 64)
    monkeypatch.chdir(tmp_path)


@pytest.fixture(autouse=True, scope="module")
def _runs_end_here() -> Iterator[None]:
    yield
    close_runs()


@pytest.mark.parametrize("key", DECISIONS)
def test_setting_that_is_changed_changes_what_is_seen(key: str) -> None:
    entry = DECISIONS[key]
    assert sees_change(key, entry), f"{key} = {entry.value!r} changed nothing"


@pytest.mark.parametrize("key", looks(DECISIONS))
def test_look_at_the_same_settings_sees_the_same(key: str) -> None:
    assert sees_the_same(DECISIONS[key])
