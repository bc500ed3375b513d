"""Replays of stored runs, by what tests have at hand."""

from collections.abc import Sequence

from schemas.playbook import PlaybookDefinition
from schemas.settings import Settings
from services.store import RunRecord, Store
from trading_core.bars import BarSeries
from worker.live.replay import PaperScript
from worker.runs.backtest import run_backtest
from worker.runs.replay import BacktestScript, Replay

Definitions = Sequence[PlaybookDefinition] | None


def backtest_replay(
    settings: Settings, bars: BarSeries, store: Store, record: RunRecord, definitions: Definitions = None
) -> Replay:
    """Of a backtest, from its bars."""
    script = BacktestScript(run_backtest, settings, bars, store, record, definitions)
    return Replay(script, store, record)


def paper_replay(
    settings: Settings, store: Store, record: RunRecord, definitions: Definitions = None
) -> Replay:
    """Of a paper run, from the store."""
    return Replay(PaperScript(settings, store, record, definitions), store, record)
