"""A run whose model lies about its trades: the rules' text stays, the claims are journalled, it replays."""

import json
from functools import cache
from types import SimpleNamespace
from typing import Any, cast

from agents.language_models.cassette import Cassette, recorded_call
from schemas.settings import LlmSettings, ReflectionSettings, Settings
from services.journal.index import Event, JournalIndex
from services.journal.references import check_references
from tests.services.high_level.narrators import LIE, Narrator
from tests.worker.shared_runs import Run, embedded_bars, run_on
from worker.models import Models
from worker.runs.replay import stored_settings

FULL = Settings(reflection=ReflectionSettings(mode="full"), llm=LlmSettings(provider="anthropic"))


@cache
def lied_to() -> tuple[Run, Narrator]:
    slow = Narrator([LIE])
    models = Models(fast=cast(Any, Narrator(["no verdict"])), slow=cast(Any, slow))
    return run_on(embedded_bars("2000-03-01", "2003-12-31"), FULL, models=models), slow


def test_lying_narrative_leaves_the_rule_text_with_its_claims_in_the_journal():
    run, model = lied_to()
    reports, checks = run.of("high_level_report"), run.of("fact_check")
    assert len(checks) == len(reports) > 0
    assert len(model.prompts) == 3 * len(reports)
    for report, check in zip(reports, checks, strict=True):
        assert LIE not in report["report"]["narrative"]
        assert report["report"]["narrative"].split()[1:3] == ["resolved", "trades,"]
        assert check["kept"] is False
        assert check["counts"]["contradicted"] > 0
        assert any("+0.96R" in claim["said"] for claim in check["claims"])


def test_run_with_checked_texts_is_replayed_row_by_row():
    run, _ = lied_to()
    calls = [recorded_call(payload, None) for payload in run.of("model_call")]
    bars = embedded_bars("2000-03-01", "2003-12-31")
    assert run_on(bars, FULL, cassette=Cassette("all", calls)).rows[-1].hash == run.rows[-1].hash


def test_check_names_the_report_that_it_is_of():
    index = JournalIndex()
    for row in lied_to()[0].rows:
        index.add(Event(row, json.loads(row.payload)))
    assert check_references(index, finished=True).dangling == ()


def test_run_of_before_keeps_its_hash_and_has_its_numbers_looked_up_alone():
    config = FULL.payload()
    record = SimpleNamespace(run_id="r", config=config, config_hash=FULL.config_hash)
    assert stored_settings(cast(Any, record)).deliberation.quality.fact_check == "claims"
    record.config = config | {"deliberation": {}}
    earlier = stored_settings(cast(Any, record))
    assert earlier.deliberation.quality.fact_check == "numbers"
    assert earlier.config_hash == FULL.config_hash
