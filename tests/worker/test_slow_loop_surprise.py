"""Few but huge losses are examined early, at default settings; ordinary ones are not."""

import json
from functools import cache
from typing import Any

from schemas.settings import HighLevelSettings, Settings
from services.playbooks.loader import load_playbooks
from services.statistics.slots import is_slot
from tests.worker.crashing_worlds import crashing_world
from tests.worker.shared_runs import Run, run_on
from worker.studies.scenarios import PLANTED

CRASH = 146  # longs are open there


@cache
def ran(*crashes: int) -> Run:
    books = (*load_playbooks(PLANTED), *load_playbooks(None))
    return run_on(crashing_world(crashes=crashes, fall=0.52), Settings(), books)


def early(run: Run) -> list[dict[str, Any]]:
    return [skip for skip in run.of("slow_skip") if not is_slot(skip["slot"], "daily")]


def test_world_of_few_but_huge_losses_is_examined_early_and_the_gate_stays_shut() -> None:
    run = ran(CRASH)
    rows = [(row.kind, json.loads(row.payload)) for row in run.rows if row.kind in ("episode", "slow_skip")]
    (request,) = early(run)
    at = rows.index(("slow_skip", request))
    known = [item["episode"]["r"] for kind, item in rows[:at] if kind == "episode"]
    assert len(known) == request["facts"]["episodes"] < request["facts"]["needed"] == 20
    assert sum(map(abs, known)) >= Settings().high_level.surprise_limit_r
    assert (request["reason"], request["trigger"]) == ("insufficient_episodes", "surprise")
    assert request["next_eligible"] > request["slot"]
    slots = [skip["slot"] for skip in run.of("slow_skip") if skip is not request and "trigger" not in skip]
    assert all(is_slot(slot, "daily") for slot in slots), "nothing else was examined between two slots"


def test_world_without_huge_losses_is_not_examined_early() -> None:
    run = ran()
    assert len(run.of("slow_skip")) > 50
    assert early(run) == []


def test_surprise_limit_of_the_settings_decides_how_much_asks() -> None:
    books = (*load_playbooks(PLANTED), *load_playbooks(None))
    patient = Settings(high_level=HighLevelSettings(surprise_limit_r=500.0))
    assert early(run_on(crashing_world(crashes=(CRASH,), fall=0.52), patient, books)) == []
