"""A savepoint that somebody edited and sealed again raises no limit: those are of the settings, always."""

import base64
import json
import sqlite3
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from schemas.settings import Settings
from services.feeds.port import series_of
from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter
from services.store.checkpoints import seal, unseal
from tests.worker.live.paper_runs import rows_of, waiting_feed
from tests.worker.live.test_paper_savepoints import Process, few
from trading_core.kernel.fresh import parameter_record
from trading_core.kernel.records import SYMBOL
from trading_core.live.growing_bars import GrowingBars
from worker.bootstrap import assemble

LOOSE = {
    "envelope": {
        "risk_fraction": 0.02,
        "max_gross_exposure": 3.0,
        "max_daily_loss": 0.5,
        "max_drawdown": 0.9,
        "allowed_directions": ["long"],
    },
    "execution": {"fee_bps": 1.0, "slippage_bps": 0.5, "sizing": "volatility", "both_hit": "target"},
    "judge": {"max_open_experiments": 9, "promotion_alpha": 0.2},
    "gate": {"q": 0.3, "minimum_trades": 25},
    "memory": {"winners": 1, "budget_ms": 10.0},
    "reflection": {"min_reward_to_risk": 0.1},
    "high_level": {"minimum_episodes": 25},
    "llm": {"per_run": {"usd": 99.0}},
}
Edit = Callable[[dict[str, Any]], None]


def raised_parameters(state: dict[str, Any]) -> None:
    loose = Settings.model_validate(LOOSE)
    record = parameter_record(loose.execution, loose.envelope, heartbeat=1, emit_events=True)
    state["engine"]["parameters"] = base64.b64encode(record.tobytes()).decode()


def own_envelope(state: dict[str, Any]) -> None:
    given = Settings.model_validate(LOOSE).envelope.model_dump(mode="json")
    state["session"]["slow_loop"]["_trials"]["_ledgers"] = {"_envelope": given}


def own_settings(state: dict[str, Any]) -> None:
    state["session"]["settings"] = {"seed": 7}


def other_section(state: dict[str, Any]) -> None:
    state["session"]["models"]["account"]["ledger"]["settings"] = {"per_run": {"usd": 99.0}}


def no_section(state: dict[str, Any]) -> None:
    state["session"]["policy_loop"]["_judge"]["_settings"] = None


def other_buckets(state: dict[str, Any]) -> None:
    cells = np.frombuffer(base64.b64decode(state["engine"]["state"]), dtype=SYMBOL).copy()
    cells["buckets"] = 1
    state["engine"]["state"] = base64.b64encode(cells.tobytes()).decode()


def edited(folder: Path, edit: Edit) -> None:
    """Change the state of the newest savepoint and seal it again."""
    with sqlite3.connect(folder / "paper.db") as store:
        query = "SELECT number, state FROM savepoints WHERE state IS NOT NULL"
        [(number, text)] = store.execute(query).fetchall()
        state = json.loads(zlib.decompress(unseal(text)))
        before = json.dumps(state)
        edit(state)
        assert json.dumps(state) != before
        new = seal(zlib.compress(json.dumps(state).encode()))
        store.execute("UPDATE savepoints SET state = ? WHERE number = ?", (new, number))


@pytest.mark.parametrize(
    "edit",
    [
        raised_parameters,
        own_envelope,
        own_settings,
        other_section,
        no_section,
        other_buckets,
    ],
)
def test_paper_savepoint_that_was_edited_to_raise_a_limit_and_sealed_again_is_not_used(
    tmp_path: Path, edit: Edit
) -> None:
    process = Process(tmp_path)
    process.dies(170, feed=waiting_feed(few()))
    edited(tmp_path, edit)
    process.dies(5, feed=waiting_feed(few()))
    [refused] = process.quoted("savepoint_not_used")
    assert refused["run_id"] == "r0001"
    [recovered] = process.quoted("recovered")
    assert recovered["rows_played"] == recovered["rows"] == 169


def state_of(settings: Settings) -> dict[str, Any]:
    """The state of a session behind its first row."""
    bars = few()
    first = series_of(bars.symbols, bars.timeframe, bars.label, rows_of(bars)[:1])
    journal = JournalWriter(MemorySink(), 10**9)
    return assemble(settings, GrowingBars(first), journal).state()


def test_paper_savepoint_holds_nothing_that_the_settings_say() -> None:
    assert state_of(Settings.model_validate(LOOSE)) == state_of(Settings())
