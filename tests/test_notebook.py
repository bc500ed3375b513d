"""The notebook that `init` writes: its cells run as in a kernel, and make the backtest of the command."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config
from typer.testing import CliRunner

from worker.cli import app

NOTEBOOK = "first_look.ipynb"


def sources(path: Path) -> list[str]:
    """The code cells of a notebook."""
    book = json.loads(path.read_text("utf-8"))
    assert (book["nbformat"], book["metadata"]["kernelspec"]["name"]) == (4, "python3")
    return ["".join(cell["source"]) for cell in book["cells"] if cell["cell_type"] == "code"]


async def run_cells(cells: list[str]) -> tuple[dict[str, Any], list[dict[str, Any]], list[dict[str, Any]]]:
    """Names that stand at the end, what each cell shows by media type, and what it displays on its way.

    Run in the running event loop.
    """
    without_history = Config(HistoryManager={"enabled": False}, HistoryAccessor={"enabled": False})
    shell = InteractiveShell.instance(config=without_history)
    shown: list[dict[str, Any]] = []
    shell.display_pub = CapturingDisplayPublisher()
    try:
        for cell in cells:
            done = await shell.run_cell_async(cell, transformed_cell=shell.transform_cell(cell))
            done.raise_error()
            shown.append({} if done.result is None else shell.display_formatter.format(done.result)[0])
        displayed = [output["data"] for output in shell.display_pub.outputs]
        return dict(shell.user_ns), shown, displayed
    finally:
        shell.restore_sys_module_state()
        InteractiveShell.clear_instance()


def test_notebook_of_init_runs_inside_an_event_loop_and_trades_as_the_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    assert CliRunner().invoke(app, ["init", "demo"]).exit_code == 0
    monkeypatch.chdir(tmp_path / "demo")
    names, shown, displayed = asyncio.run(run_cells(sources(Path(NOTEBOOK))))
    result = names["result"]
    assert "<table" in shown[0]["text/html"]
    assert any("application/vnd.bokehjs_exec.v0+json" in entry for entry in displayed)
    assert len(result.trades) > 20
    assert "exit_filled" in capsys.readouterr().out
    assert shown[-1]["text/plain"] == "True"
    done = CliRunner().invoke(app, ["backtest", "thinktwice.toml", "--json"])
    assert json.loads(done.stdout)["journal"]["head_hash"] == result.head_hash


def test_cell_that_fails_is_noticed():
    with pytest.raises(ZeroDivisionError):
        asyncio.run(run_cells(["1 / 0"]))
