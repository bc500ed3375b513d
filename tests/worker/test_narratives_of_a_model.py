"""A run whose model lies in every field that it has: nothing false is stored, and it replays."""

import json
from functools import cache
from typing import Any, cast

import pytest

from agents.language_models.cassette import Cassette, recorded_call
from schemas.settings import JudgeSettings, LlmSettings, PolicyLoopSettings, ReflectionSettings, Settings
from services.journal.index import Event, JournalIndex
from services.journal.references import check_references
from services.model_calls.language_model import ModelReply
from tests.services.deliberation.scripted import section
from tests.services.high_level.narrators import Narrator
from tests.worker.shared_runs import Run, embedded_bars, fewer_bars, run_on
from worker.models import Models

pytestmark = pytest.mark.usefixtures("over_the_cap")  # a reader is asked where it may decide

YEARS = ("2003-01-01", "2005-06-30")  # until the second report
FULL = Settings(
    reflection=ReflectionSettings(mode="full"), llm=LlmSettings(model="anthropic/claude-haiku-5-5")
)


SPOKEN = "channel_breakout won all 60 trades"
LIES: list[dict[str, Any]] = [
    {"kind": "value", "measure": "mean_r", "of": {"playbook": "channel_breakout"}, "stated": "9.96"},
    {"kind": "sign", "measure": "worst_r", "of": {}, "sign": "positive"},
    {"kind": "value", "measure": "mean_r", "of": {"symbol": "NVDA"}},
    {"kind": "rank", "measure": "trades", "by": "symbol", "who": SPOKEN},
    {"kind": "every", "measure": "mean_r", "by": "playbook", "relation": "above", "bound": "5",
     "but": [SPOKEN]},
]  # fmt: skip


@cache
def lied_to() -> tuple[Run, Narrator]:
    slow = Narrator([(section(*LIES, topic=SPOKEN, comment=SPOKEN),)])
    models = Models(fast=cast(Any, Narrator(["no verdict"])), slow=cast(Any, slow))
    return run_on(fewer_bars(*YEARS), FULL, models=models), slow


def test_lying_narrative_leaves_the_rule_text_with_its_claims_in_the_journal():
    run, model = lied_to()
    reports, checks = run.of("high_level_report"), run.of("fact_check")
    assert len(checks) == len(reports) > 0
    assert len(model.prompts) == 2 * len(reports)
    for report, check in zip(reports, checks, strict=True):
        stored = report["report"]
        assert SPOKEN not in json.dumps(stored)
        assert stored["narrative"].startswith("window:\n- The number of trades of the report was ")
        assert all(part["comment"] is None for part in stored["sections"])
        assert check["kept"] is False
        assert check["counts"] == {
            "verified": 0, "contradicted": 2, "unverifiable": 3, "dropped_comments": 1,
        }  # fmt: skip


@cache
def half_true() -> Run:
    mean = {"kind": "value", "measure": "mean_r", "of": {}}
    slow = Narrator([(section(mean, *LIES, comment="A calm time, all in all."),)])
    models = Models(fast=cast(Any, Narrator(["no verdict"])), slow=cast(Any, slow))
    return run_on(fewer_bars(*YEARS), FULL, models=models)


def test_narrative_that_holds_in_part_is_stored_without_the_rest_and_its_comment_apart():
    reports = half_true().of("high_level_report")
    assert reports
    for report in reports:
        (part,) = report["report"]["sections"]
        (statement,) = part["statements"]
        assert set(statement) == {"claim", "text"}, "rows are looked up by whoever shows it"
        assert report["report"]["narrative"] == f"window:\n- {statement['text']}"
        assert part["comment"] == "A calm time, all in all."


def test_run_with_checked_texts_is_replayed_row_by_row():
    run, _ = lied_to()
    calls = [recorded_call(payload, None) for payload in run.of("model_call")]
    bars = fewer_bars(*YEARS)
    assert run_on(bars, FULL, cassette=Cassette("all", calls)).rows[-1].hash == run.rows[-1].hash


def test_check_names_the_report_that_it_is_of():
    index = JournalIndex()
    for row in lied_to()[0].rows:
        index.add(Event(row, json.loads(row.payload)))
    assert check_references(index, finished=True).dangling == ()


class Spoken:
    """Puts the same lie into another place of every reply, none of which its contract takes."""

    def __init__(self) -> None:
        self.requested = 0

    async def complete(self, *, system: str, prompt: str, max_tokens: int, deadline_ms: float) -> ModelReply:
        unsaid = {"kind": "feature", "name": SPOKEN}
        replies = (
            SPOKEN,
            json.dumps({SPOKEN: 1}),
            f'{{"{SPOKEN}": 1, "{SPOKEN}": 2}}',
            json.dumps({"verdict": SPOKEN, "findings": [], "objections": [], "deferred_needs": []}),
            json.dumps({"verdict": "pass", "findings": [SPOKEN], "objections": [], "deferred_needs": []}),
            json.dumps({"because": [], "answer": SPOKEN}),
            json.dumps({"because": [unsaid], "answer": "propose", "base": SPOKEN}),
            json.dumps({"reasons": [], "keep": [SPOKEN]}),
            json.dumps({"sections": [{"topic": SPOKEN, "claims": [{"kind": SPOKEN}]}]}),
        )
        self.requested += 1
        return ModelReply(replies[self.requested % len(replies)], "m", 1, 1, 0.0)


def test_reply_that_is_refused_leaves_none_of_its_words_in_a_stored_row_but_that_of_its_call():
    model = cast(Any, Spoken())
    settings = FULL.model_copy(
        update={
            "policy_loop": PolicyLoopSettings(strategist="model"),
            "judge": JudgeSettings(replan="model"),
        }
    )
    run = run_on(
        embedded_bars("2000-03-01", "2003-12-31"),
        settings,
        models=Models(fast=model, slow=model, strategist=model, judge=model),
    )
    assert model.requested > 50
    holding = {row.kind for row in run.rows if SPOKEN in row.payload or json.dumps(SPOKEN) in row.payload}
    assert holding == {"model_call"}
