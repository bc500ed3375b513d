"""The pages of the doors run as they stand, each in a folder of its own, and stay short.

Those of freqtrade and of the OpenAI Agents SDK are run by `make doors-check`, with the real packages.
"""

import pytest

from tools.docs_examples import write_files
from tools.docs_pages import DOCS, fences

HOW_TO = DOCS / "how-to"
DOORS = sorted((HOW_TO / "guard").glob("*.md"))


def run_blocks(page, folder, monkeypatch):
    """Run the Python blocks of a page that are no files."""
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(folder)
    write_files(page, folder)
    for fence in fences(page):
        if fence.language == "python" and "title" not in fence.options:
            exec(compile(fence.text, str(page), "exec"), {"__name__": "__main__"})


def test_page_of_the_decorator_runs(tmp_path, monkeypatch, capsys):
    run_blocks(HOW_TO / "guard" / "decorator.md", tmp_path, monkeypatch)
    refused, sent = capsys.readouterr().out.splitlines()
    assert "quantity at most 66.6666 would pass this check" in refused
    assert sent == "1 order was sent, under the id of its verdict: True"


def test_page_of_langchain_runs(tmp_path, monkeypatch, capsys):
    run_blocks(HOW_TO / "guard" / "langchain.md", tmp_path, monkeypatch)
    refused, sent = capsys.readouterr().out.splitlines()
    assert "quantity at most 100.0 would pass this check" in refused
    assert sent == "accepted 50"


def test_page_of_ones_own_agent_runs(tmp_path, monkeypatch, capsys):
    run_blocks(HOW_TO / "backtest-your-own-agent.md", tmp_path, monkeypatch)
    function, graph = capsys.readouterr().out.splitlines()
    assert function.endswith("True")
    assert not function.startswith("0 ")
    assert graph.endswith("trades of {'own_agent'}")


@pytest.mark.parametrize("page", DOORS, ids=lambda page: page.stem)
def test_page_of_a_door_has_thirty_lines_at_most(page):
    assert len(page.read_text("utf-8").splitlines()) <= 30


def test_there_is_a_page_of_each_door():
    assert [page.stem for page in DOORS] == [
        "decorator", "freqtrade", "http", "langchain", "mcp", "openai-agents"
    ]  # fmt: skip
