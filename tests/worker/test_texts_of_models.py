"""Texts of models in running backtests: looked at again, held against the run, journalled, played back."""

import asyncio
import json
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, cast

import pytest

from agents.language_models.cassette import Cassette, recorded_call
from agents.model_seats import text_models_of
from schemas.settings import (
    DeliberationSettings,
    LlmSettings,
    ReflectionSettings,
    Settings,
)
from schemas.settings.deliberation import QualitySettings
from services.deliberation.forms import (
    IMPROVEMENT,
    OUTLINE,
    QUALITY,
    QUALITY_REWRITE,
    REVIEW,
    REVIEW_REWRITE,
    SECTION,
)
from services.high_level.report_sections import TOPICS
from services.journal.index import Event, JournalIndex
from services.journal.references import check_references
from services.model_calls.language_model import ModelReply
from services.store import NewRun, open_store
from tests.services.deliberation.scripted import section
from tests.services.high_level.narrators import Narrator
from tests.worker.replays import backtest_replay
from tests.worker.shared_runs import Run, fewer_bars, run_on
from tests.worker.test_judge_with_a_model import definitions, settings, world
from worker.models import Models, Overrides
from worker.runs.backtest import run_backtest
from worker.runs.replay import ReplayReport
from worker.runs.store_run import record_run
from worker.studies.deliberated import models_asked

FULL = Settings(
    reflection=ReflectionSettings(mode="full"),
    llm=LlmSettings(model="anthropic/claude-haiku-5-5", slow="anthropic/claude-opus-5-5"),
    deliberation=DeliberationSettings(quality=QualitySettings(threshold=50)),
)
APART = FULL.model_copy(update={"deliberation": FULL.deliberation.model_copy(update={"one_reply": False})})
YEARS = ("2003-01-01", "2005-06-30")  # until the second report
ONE_REPORT = ("2003-01-01", "2004-07-31")
MEAN = {"kind": "value", "measure": "mean_r", "of": {}}
TRADES = {"kind": "value", "measure": "report_trades", "of": {}}
PLAIN = (section(MEAN),)
BETTER = (section(MEAN, TRADES), *(section(MEAN, topic=topic) for topic in TOPICS[1:]))
IMPROVED = {"reasoning": "r", "sections": list(BETTER)}
LACKING = {"issues": ["it names no consequence"], "suggestions": [], "missing_elements": ["what follows"]}


@dataclass
class Replies:
    """Answers each question in turn, the last one again and again; keeps what it was asked."""

    replies: list[Any]
    prompts: list[str] = field(default_factory=list)
    deadlines_ms: list[float] = field(default_factory=list)

    async def complete(self, *, system: str, prompt: str, max_tokens: int, deadline_ms: float) -> ModelReply:
        self.prompts.append(prompt)
        self.deadlines_ms.append(deadline_ms)
        reply = self.replies[min(len(self.prompts), len(self.replies)) - 1]
        return ModelReply(reply if isinstance(reply, str) else json.dumps(reply), "m", 1, 1, 0.0)


def scored(percent: float) -> dict[str, Any]:
    names = ("completeness", "accuracy", "actionability", "confidence")
    return dict.fromkeys(names, percent) | LACKING


def rewritten(percent: float, *sections: dict[str, Any]) -> dict[str, Any]:
    return scored(percent) | {"reasoning": "r", "sections": list(sections)}


def texts_of(run: Run) -> list[list[tuple[str, ...]]]:
    """The measures of each section of each report."""
    return [
        [
            tuple(statement["claim"]["measure"] for statement in part["statements"])
            for part in report["report"]["sections"]
        ]
        for report in run.of("high_level_report")
    ]


@cache
def narrated() -> tuple[Run, Replies, Replies]:
    critic, improver = (
        Replies([scored(60), scored(90)] * 50),
        Replies([IMPROVED]),
    )
    models = Models(
        fast=cast(Any, Narrator(["no verdict"])),
        slow=cast(Any, Narrator([PLAIN])),
        texts=cast(Any, {QUALITY: critic, IMPROVEMENT: improver}),
    )
    return run_on(fewer_bars(*YEARS), APART, models=models), critic, improver


@cache
def narrated_in_one_reply() -> tuple[Run, Replies]:
    critic = Replies([rewritten(60, *BETTER), rewritten(90)] * 50)
    models = Models(
        fast=cast(Any, Narrator(["no verdict"])),
        slow=cast(Any, Narrator([PLAIN])),
        texts=cast(Any, {QUALITY: Replies([]), IMPROVEMENT: Replies([]), QUALITY_REWRITE: critic}),
    )
    return run_on(fewer_bars(*YEARS), FULL, models=models), critic


def test_narrative_below_the_threshold_is_written_again_in_the_reply_that_scores_it():
    run, critic = narrated_in_one_reply()
    before = narrated()[0]
    reports, rows = run.of("high_level_report"), run.of("deliberation")
    assert len(critic.prompts) == 2 * len(reports) > 0
    assert texts_of(run) == [[("mean_r", "report_trades"), *[("mean_r",)] * 5]] * len(reports)
    assert {row["usage"]["calls"] for row in rows} == {3}
    assert [row["critiques"] for row in rows] == [row["critiques"] for row in before.of("deliberation")]
    calls = {row["call"]["prompt"]: row["call"] for row in run.of("model_call")}
    assert (calls[QUALITY_REWRITE]["temperature"], calls[QUALITY_REWRITE]["max_tokens"]) == (0.2, 2_524)


def test_narrative_below_the_threshold_is_improved_and_the_better_text_stands():
    run, critic, improver = narrated()
    reports, rows = run.of("high_level_report"), run.of("deliberation")
    assert len(rows) == len(reports) == len(improver.prompts) > 0
    assert len(critic.prompts) == 2 * len(reports)
    for report, row in zip(reports, rows, strict=True):
        assert report["report"]["narrative"].count("\n- ") == 7
        assert (row["preset"], row["text"], row["status"], row["changed"]) == (
            "quality", "narrative", "accepted", True,
        )  # fmt: skip
        assert row["report_id"] == report["report_id"]
        assert row["self_reported_gain"] == pytest.approx(0.3)
        assert [item["overall"] for item in row["critiques"] if item["source"] == "model"] == [0.6, 0.9]
        assert row["usage"]["calls"] == 4
    assert "what follows" in improver.prompts[0]


def test_summary_counts_what_became_of_texts():
    payload = narrated()[0].document["deliberation"]
    reports = len(narrated()[0].of("high_level_report"))
    assert (payload["total_requests"], payload["statuses"]["accepted"]) == (reports, reports)
    assert (payload["share_regenerated"], payload["share_reviewed"]) == (1.0, 0.0)
    assert payload["avg_quality_gain"] == pytest.approx(0.3)
    assert payload["avg_final_score"] == pytest.approx(0.9)


@pytest.mark.parametrize(
    ("shown", "made"), [(narrated, APART), (narrated_in_one_reply, FULL)], ids=["apart", "one reply"]
)
def test_run_whose_texts_were_refined_is_replayed_row_by_row(shown, made):
    run = shown()[0]
    calls = [recorded_call(payload, None) for payload in run.of("model_call")]
    again = run_on(fewer_bars(*YEARS), made, cassette=Cassette("all", calls))
    assert again.rows[-1].hash == run.rows[-1].hash


@dataclass
class LastFirst(Replies):
    """Answers each three questions in the opposite order."""

    answered: dict[int, asyncio.Event] = field(default_factory=lambda: defaultdict(asyncio.Event))

    async def complete(self, *, system: str, prompt: str, max_tokens: int, deadline_ms: float) -> ModelReply:
        place = len(self.prompts)
        self.prompts.append(prompt)
        if place % 3 < 2:
            await self.answered[place + 1].wait()
        self.answered[place].set()
        return ModelReply(json.dumps(self.replies[place % 3]), "m", 1, 1, 0.0)


def test_sections_that_come_in_another_order_are_recorded_in_theirs_and_replayed_row_by_row():
    chunked = APART.deliberation.chunked.model_copy(update={"enabled": True})
    texts = APART.deliberation.model_copy(update={"chunked": chunked, "narrative_tokens": 3_000})
    made = APART.model_copy(update={"deliberation": texts})
    shown = ("mean_r", "total_r", "win_rate")
    writer = LastFirst(
        [{"reasoning": "r", "claims": [MEAN | {"measure": measure}], "comment": None} for measure in shown]
    )
    models = Models(
        fast=cast(Any, Narrator(["no verdict"])),
        slow=cast(Any, Narrator([PLAIN])),
        texts=cast(
            Any,
            {
                OUTLINE: Replies([{"chunks": list(TOPICS[:3])}]),
                SECTION: writer,
                QUALITY: Replies([scored(90)]),
                IMPROVEMENT: Replies([]),
            },
        ),
    )
    run = run_on(fewer_bars(*ONE_REPORT), made, models=models)
    calls = [recorded_call(payload, None) for payload in run.of("model_call")]
    written = [json.loads(call.text)["claims"][0]["measure"] for call in calls if call.prompt == SECTION]
    reports = run.of("high_level_report")
    assert written == list(shown) * len(reports)
    assert texts_of(run) == [[(measure,) for measure in shown]] * len(reports)
    assert [row["chunk_index"] for row in run.of("chunk_write")] == [0, 1, 2] * len(reports)
    again = run_on(fewer_bars(*ONE_REPORT), made, cassette=Cassette("all", calls))
    assert again.rows[-1].hash == run.rows[-1].hash


def test_every_id_of_the_rows_of_texts_leads_somewhere():
    index = JournalIndex()
    for row in narrated()[0].rows:
        index.add(Event(row, json.loads(row.payload)))
    assert check_references(index, finished=True).dangling == ()


def test_review_is_journalled_cycle_by_cycle_where_it_is_on():
    review = FULL.deliberation.review.model_copy(update={"enabled": True, "threshold": 0.6})
    quality = FULL.deliberation.quality.model_copy(update={"enabled": False})
    shown = FULL.deliberation.model_copy(update={"review": review, "quality": quality})
    critic = Replies([{"score": 0.9, "critique": "good", "improvements": []}])
    models = Models(
        fast=cast(Any, Narrator(["no verdict"])),
        slow=cast(Any, Narrator([BETTER])),
        texts=cast(Any, {REVIEW: critic, IMPROVEMENT: Replies([IMPROVED])}),
    )
    run = run_on(fewer_bars(*ONE_REPORT), FULL.model_copy(update={"deliberation": shown}), models=models)
    cycles = run.of("review_cycle")
    assert len(cycles) == len(run.of("high_level_report")) == len(critic.prompts) > 0
    seen = {(round(row["quality_score"], 2), row["accepted"], row["threshold"]) for row in cycles}
    assert seen == {(0.67, True, 0.6)}, "no action is advised, which a model's score cannot hide"


@cache
def judged_falsely() -> Run:
    lies = [
        {"kind": "advice", "action": "replan", "of": {}},
        {"kind": "drop", "action": "a1, since all 60 trades won", "because": "too_young"},
    ]
    true = {"kind": "value", "measure": "report_trades", "of": {}}
    reply = {"reasons": [*lies, true], "comment": "All 60 trades won.", "keep": ["a1"]}
    return run_on(
        world(), settings("anthropic"), definitions(), models=Models(judge=cast(Any, Replies([reply])))
    )


def test_reason_of_a_judge_is_held_against_the_report_and_the_false_part_dropped():
    run = judged_falsely()
    checks = [row for row in run.of("fact_check") if row["text"] == "judge_reason"]
    verdicts = {row["verdict_id"]: row["verdict"] for row in run.of("replan_verdict")}
    assert checks
    for check in checks:
        assert check["counts"] == {
            "verified": 1, "contradicted": 1, "unverifiable": 0, "dropped_comments": 1,
        }  # fmt: skip
        verdict = verdicts[check["verdict_id"]]
        assert "All 60 trades" not in json.dumps(verdict)
        assert "The number of trades of the report was " in verdict["reason"]


def test_another_critic_or_a_reply_of_its_own_is_never_asked_to_write():
    review = FULL.deliberation.review.model_copy(update={"enabled": True})
    for update, rewrites in (
        ({}, True),
        ({"critique_model": FULL.llm.slow_model}, True),
        ({"critique_model": FULL.llm.fast_model}, False),
        ({"one_reply": False}, False),
    ):
        texts = FULL.deliberation.model_copy(update={"review": review, **update})
        made = FULL.model_copy(update={"deliberation": texts})
        for request in (text_models_of(made), models_asked(made, "quality") | models_asked(made, "review")):
            writers = {request.get(name) for name in (QUALITY_REWRITE, REVIEW_REWRITE)}
            assert writers == ({FULL.llm.slow_model} if rewrites else {None})


def test_temperature_of_a_question_is_recorded_where_one_is_asked_for():
    calls = {row["call"]["prompt"]: row["call"] for row in narrated()[0].of("model_call")}
    assert (calls[QUALITY]["temperature"], calls[IMPROVEMENT]["temperature"]) == (0.2, 0.4)
    assert calls["high_level_reflection"]["temperature"] is None


class Hanging(Replies):
    async def complete(self, *, system: str, prompt: str, max_tokens: int, deadline_ms: float) -> ModelReply:
        self.prompts.append(prompt)
        await asyncio.Event().wait()
        raise AssertionError("it is given up before")


@pytest.mark.parametrize(
    ("critic", "of"),
    [
        (Replies([scored(60), scored(90)] * 9), APART),
        (Hanging([]), APART),
        (Replies([rewritten(60, *BETTER), rewritten(90)] * 9), FULL),
        (Hanging([]), FULL),
    ],
    ids=["scores", "hangs", "writes again", "hangs in one reply"],
)
def test_stored_run_with_texts_is_verified_row_by_row_and_figure_by_figure(critic, of, tmp_path):
    quality = of.deliberation.quality.model_copy(update={"deadline_ms": 50.0})
    made = of.model_copy(update={"deliberation": of.deliberation.model_copy(update={"quality": quality})})
    bars = fewer_bars(*ONE_REPORT)
    new = NewRun(
        "x", 0, "backtest", made.config_hash, made.payload(), {"sha256": bars.sha256, "path": None}, {}
    )
    models = Models(
        fast=cast(Any, Narrator(["no verdict"])),
        slow=cast(Any, Narrator([PLAIN])),
        texts=cast(
            Any,
            {
                QUALITY: critic,
                QUALITY_REWRITE: critic,
                IMPROVEMENT: Replies([IMPROVED]),
            },
        ),
    )

    async def verified() -> tuple[int, ReplayReport]:
        async with await open_store(f"sqlite:///{tmp_path / 't.db'}", create=True) as store:
            kept = await record_run(partial(run_backtest, own=Overrides(models)), made, bars, store, new)
            rows = [row async for row in store.journal.rows(kept.record.run_id, kinds={"deliberation"})]
            return len(rows), await backtest_replay(made, bars, store, kept.record).compare()

    count, replay = asyncio.run(verified())
    assert count > 0
    assert (replay.problem, replay.document, replay.ok) == (None, (), True)
    assert critic.prompts
