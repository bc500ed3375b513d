"""Stores with a paper run over two embedded symbols, and what a command prints about one."""

from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from tests.worker.live.paper_runs import address, waiting_feed
from tests.worker.shared_runs import embedded_bars
from worker.cli import app


def feed() -> Any:
    return waiting_feed(embedded_bars("2003-01-01", "2003-09-30").select(("AAPL", "IBM")))


def read_text(folder: Path, *words: str, code: int) -> str:
    done = CliRunner().invoke(app, [*words, "--db", address(folder)])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    assert done.exit_code == code, done.output
    return done.output
