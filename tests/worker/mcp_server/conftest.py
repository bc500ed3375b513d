"""A store with a run, and one that ends earlier."""

import os
from pathlib import Path
from typing import Any

import pytest

from tests.worker.cli.conftest import Shell
from tests.worker.evidence_stores import EARLIER, store_run


@pytest.fixture(scope="session")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return store_run(tmp_path_factory.mktemp("evidence") / "thinktwice.db")


@pytest.fixture(scope="session")
def ended_earlier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return store_run(tmp_path_factory.mktemp("earlier") / "thinktwice.db", EARLIER)


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    for name in [name for name in os.environ if name.startswith("THINKTWICE_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return Shell(tmp_path)
