"""The parts of the engine that commands start, imported when they are first needed."""

from pathlib import Path

from schemas.config import Settings
from schemas.playbook import PlaybookDefinition
from worker.recorded_run import BacktestRunner


def backtest_runner() -> BacktestRunner:
    """The backtest."""
    from worker.backtest import run_backtest

    return run_backtest


def playbooks(settings: Settings) -> tuple[PlaybookDefinition, ...]:
    """The playbooks of the configured folder, or the embedded ones.

    Raises:
        ConfigError: a file that is not a playbook, with the field and the reason.
    """
    from services.playbooks.registry import load_playbooks

    folder = settings.policy_loop.playbooks
    return load_playbooks(None if folder is None else Path(folder))
