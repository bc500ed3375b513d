"""Trials and terms of a live run end at the slots although its reports come from elsewhere."""

from typing import Any

import pytest

from schemas.settings import Settings
from services.slow_loop_service import SlowLoopService
from services.statistics.slots import last_slot
from tests.worker.live.paper_runs import RunningFeed, traded
from tests.worker.shared_runs import embedded_bars


def test_paper_live_run_keeps_its_trials_at_every_slot(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    bars, kept = embedded_bars("2009-01-01", "2009-03-31").select(("AAPL",)), []
    keep = SlowLoopService._keep_trials

    def seen(loop: SlowLoopService, row: int, now: int) -> None:
        kept.append(row)
        keep(loop, row, now)

    monkeypatch.setattr(SlowLoopService, "_keep_trials", seen)
    traded(tmp_path, Settings(), RunningFeed(bars))
    slots = [last_slot(now, "weekly") for now in bars.close_times.tolist()]
    first_behind_each = [row for row in range(1, len(slots)) if slots[row] != slots[row - 1]]
    assert len(first_behind_each) > 10
    assert len(kept) >= len(first_behind_each) - 2, (
        "one that an evaluation was out at is kept with the next row"
    )
    assert len(set(kept)) == len(kept)
