"""R8 in the types: what the fast path holds has no method that writes, so a write does not type-check."""

import re
from pathlib import Path

import pytest
from mypy import api

ROOT = Path(__file__).resolve().parents[3]
SNIPPET = """
from schemas.playbook import PlaybookVersion
from services.memory.episode_memory import EpisodeMemory
from services.playbooks.expectations import ExpectationBook
from services.playbooks.registry import PlaybookRegistry
from services.ports import ExpectationReader, MemoryReader, PlaybookReader


def fits(memory: EpisodeMemory, book: ExpectationBook, registry: PlaybookRegistry) -> None:
    a: MemoryReader = memory.reader()
    b: ExpectationReader = book.reader()
    c: PlaybookReader = registry.reader()


def writes(
    memory: EpisodeMemory, book: ExpectationBook, registry: PlaybookRegistry, version: PlaybookVersion
) -> None:
    memory.reader().add  # refused
    book.reader().record  # refused
    registry.reader().record  # refused
    registry.reader()._active["alpha"] = version  # refused
"""


@pytest.fixture
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(ROOT)
    snippet = tmp_path / "snippet.py"
    snippet.write_text(SNIPPET)
    out, problems, _ = api.run([str(snippet)])  # other options would check every import anew
    assert problems == ""
    return out


def test_readers_fit_their_protocols_and_every_write_through_them_is_refused(report):
    found = {int(row) for row in re.findall(r"snippet\.py:(\d+): error", report)}
    refused = {k for k, line in enumerate(SNIPPET.splitlines(), 1) if line.endswith("# refused")}
    assert found == refused, report
