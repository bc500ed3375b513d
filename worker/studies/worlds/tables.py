"""A drawn world as a table of trades, like the one that `thinktwice gate` reads from a file."""

from collections.abc import Sequence

import numpy as np

from services.high_level.trade_table import TradeTable
from worker.studies.worlds.calendar import CellTrades
from worker.studies.worlds.catalogue import REGIMES, World

HOUR_S = 3_600


def table_of(world: World, drawn: Sequence[CellTrades], reference: float) -> TradeTable:
    """The trades of every cell, cell after cell; every playbook is held against `reference`."""
    sizes = [len(cell.r) for cell in drawn]
    books, regimes = np.divmod(np.repeat(np.arange(world.cells), sizes), world.regimes)
    return TradeTable(
        entry_ns=np.concatenate([cell.entry_ns for cell in drawn]),
        exit_ns=np.concatenate([cell.exit_ns for cell in drawn]),
        r=np.concatenate([cell.r for cell in drawn]),
        playbook=books,
        regime=regimes,
        timeframe=np.zeros(len(books), dtype=np.int64),
        playbooks=tuple(f"playbook_{index:02d}" for index in range(world.playbooks)),
        regimes=REGIMES[: world.regimes],
        timeframes=("1h",),
        bar_s=(HOUR_S,),
        references=(reference,) * world.playbooks,
    )
