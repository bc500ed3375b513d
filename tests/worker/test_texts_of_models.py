"""Texts of models in running backtests: looked at again, held against the run, journalled, played back."""

import asyncio
import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from types import SimpleNamespace
from typing import Any, cast

import pytest

from agents.language_models.cassette import Cassette, recorded_call
from schemas.settings import LlmSettings, PolicyLoopSettings, ReflectionSettings, Settings
from services.deliberation.forms import (
    CORRECTION,
    CRITIQUE,
    IMPROVEMENT,
    OUTLINE,
    QUALITY,
    QUALITY_REWRITE,
    REVIEW,
    REVIEW_REWRITE,
    SECTION,
)
from services.journal.index import Event, JournalIndex
from services.journal.references import check_references
from services.model_calls.language_model import ModelReply
from services.store import NewRun, open_store
from tests.agents.strategies.questions import ABSTAIN, HOLD, change, propose, question
from tests.services.high_level.narrators import Narrator
from tests.worker.replays import backtest_replay
from tests.worker.shared_runs import Run, embedded_bars, run_on
from tests.worker.test_judge_with_a_model import definitions, settings, world
from worker.models import Models, text_models_of
from worker.runs.backtest import run_backtest
from worker.runs.replay import ReplayReport, stored_settings
from worker.runs.store_run import record_run
from worker.studies.deliberated import models_asked

FULL = Settings(reflection=ReflectionSettings(mode="full"), llm=LlmSettings(provider="anthropic"))
PROPOSING = Settings(
    policy_loop=PolicyLoopSettings(strategist="model"), llm=LlmSettings(provider="anthropic")
)
APART = FULL.model_copy(update={"deliberation": FULL.deliberation.model_copy(update={"one_reply": False})})
YEARS = ("2000-03-01", "2003-12-31")
PLAIN = "The window was quiet, as before."
BETTER = "The window was quiet, all things considered. A quiet window, nothing else."
RATIONALE = (
    "The range holds and the close presses against its upper edge, so a break of it is likely to run, "
    "as the stop below the range is close and the target is far."
)
MENDED = "The range holds and the close presses against its upper edge, as the stop below the range is close."
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
        said = self.replies[min(len(self.prompts), len(self.replies)) - 1]
        return ModelReply(said if isinstance(said, str) else json.dumps(said), "m", 1, 1, 0.0)


def scored(percent: float) -> dict[str, Any]:
    names = ("completeness", "accuracy", "actionability", "confidence")
    return dict.fromkeys(names, percent) | LACKING


def rewritten(percent: float, text: str = "") -> dict[str, Any]:
    return scored(percent) | {"reasoning": "r", "text": text}


@cache
def narrated() -> tuple[Run, Replies, Replies]:
    critic, improver = Replies([scored(60), scored(90)] * 50), Replies([{"reasoning": "r", "text": BETTER}])
    models = Models(
        fast=cast(Any, Narrator(["no verdict"])),
        slow=cast(Any, Narrator([PLAIN])),
        texts=cast(Any, {QUALITY: critic, IMPROVEMENT: improver}),
    )
    return run_on(embedded_bars(*YEARS), APART, models=models), critic, improver


@cache
def narrated_in_one_reply() -> tuple[Run, Replies]:
    critic = Replies([rewritten(60, BETTER), rewritten(90)] * 50)
    models = Models(
        fast=cast(Any, Narrator(["no verdict"])),
        slow=cast(Any, Narrator([PLAIN])),
        texts=cast(Any, {QUALITY: Replies([]), IMPROVEMENT: Replies([]), QUALITY_REWRITE: critic}),
    )
    return run_on(embedded_bars(*YEARS), FULL, models=models), critic


def test_narrative_below_the_threshold_is_written_again_in_the_reply_that_scores_it():
    run, critic = narrated_in_one_reply()
    before = narrated()[0]
    reports, rows = run.of("high_level_report"), run.of("deliberation")
    assert len(critic.prompts) == 2 * len(reports) > 0
    assert {report["report"]["narrative"] for report in reports} == {BETTER}
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
        assert report["report"]["narrative"] == BETTER
        assert (row["preset"], row["text"], row["status"], row["changed"]) == (
            "quality", "narrative", "accepted", True,
        )  # fmt: skip
        assert row["report_id"] == report["report_id"]
        assert row["self_reported_gain"] == pytest.approx(0.3)
        assert [item["overall"] for item in row["critiques"] if item["source"] == "model"] == [0.6, 0.9]
        assert row["usage"]["calls"] == 4
    assert "what follows" in improver.prompts[0]


def test_summary_counts_what_became_of_texts():
    told = narrated()[0].document["deliberation"]
    reports = len(narrated()[0].of("high_level_report"))
    assert (told["total_requests"], told["statuses"]["accepted"]) == (reports, reports)
    assert (told["share_regenerated"], told["share_reviewed"]) == (1.0, 0.0)
    assert told["avg_quality_gain"] == pytest.approx(0.3)
    assert told["avg_final_score"] == pytest.approx(0.9)


@pytest.mark.parametrize(
    ("told", "made"), [(narrated, APART), (narrated_in_one_reply, FULL)], ids=["apart", "one reply"]
)
def test_run_whose_texts_were_refined_is_replayed_row_by_row(told, made):
    run = told()[0]
    calls = [recorded_call(payload, None) for payload in run.of("model_call")]
    again = run_on(embedded_bars(*YEARS), made, cassette=Cassette("all", calls))
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
    told = [f"The {word} part was quiet." for word in ("first", "second", "last")]
    writer = LastFirst([{"reasoning": "r", "text": text} for text in told])
    models = Models(
        fast=cast(Any, Narrator(["no verdict"])),
        slow=cast(Any, Narrator([PLAIN])),
        texts=cast(
            Any,
            {
                OUTLINE: Replies([{"chunks": ["one", "two", "three"]}]),
                SECTION: writer,
                QUALITY: Replies([scored(90)]),
                IMPROVEMENT: Replies([]),
            },
        ),
    )
    run = run_on(embedded_bars(*YEARS), made, models=models)
    calls = [recorded_call(payload, None) for payload in run.of("model_call")]
    sections = [json.loads(call.text)["text"] for call in calls if call.prompt == SECTION]
    reports = run.of("high_level_report")
    assert sections == told * len(reports)
    assert [report["report"]["narrative"] for report in reports] == ["\n\n".join(told)] * len(reports)
    assert [row["chunk_index"] for row in run.of("chunk_write")] == [0, 1, 2] * len(reports)
    again = run_on(embedded_bars(*YEARS), made, cassette=Cassette("all", calls))
    assert again.rows[-1].hash == run.rows[-1].hash


def test_every_id_of_the_rows_of_texts_leads_somewhere():
    index = JournalIndex()
    for row in narrated()[0].rows:
        index.add(Event(row, json.loads(row.payload)))
    assert check_references(index, finished=True).dangling == ()


def test_review_is_journalled_cycle_by_cycle_where_it_is_on():
    review = FULL.deliberation.review.model_copy(update={"enabled": True})
    quality = FULL.deliberation.quality.model_copy(update={"enabled": False})
    told = FULL.deliberation.model_copy(update={"review": review, "quality": quality})
    critic = Replies([{"score": 0.9, "critique": "good", "improvements": []}])
    models = Models(
        fast=cast(Any, Narrator(["no verdict"])),
        slow=cast(Any, Narrator([PLAIN])),
        texts=cast(Any, {REVIEW: critic, IMPROVEMENT: Replies([{"reasoning": "r", "text": BETTER}])}),
    )
    run = run_on(embedded_bars(*YEARS), FULL.model_copy(update={"deliberation": told}), models=models)
    cycles = run.of("review_cycle")
    assert len(cycles) == len(run.of("high_level_report")) == len(critic.prompts) > 0
    assert {(row["quality_score"], row["accepted"], row["threshold"]) for row in cycles} == {(0.9, True, 0.7)}


@dataclass
class Strategist:
    """Takes the first plan on offer and gives its own reason for it."""

    rationale: str
    prompts: list[str] = field(default_factory=list)

    async def complete(self, *, system: str, prompt: str, max_tokens: int, deadline_ms: float) -> ModelReply:
        self.prompts.append(prompt)
        asked = question(prompt)
        said = HOLD if asked.task == "manage" else ABSTAIN
        if asked.task == "choose":
            said = propose(asked.base(), change("rationale", self.rationale))
        return ModelReply(json.dumps(said), "m", 1, 1, 0.0)


NEEDS = {
    "assessment": "NEEDS CORRECTION",
    "confidence": 0.8,
    "explanation": "the second half follows from nothing",
}


def proposed(critique: Any, correction: Any, rationale: str = RATIONALE) -> tuple[Run, Replies, Replies]:
    critic, corrector = Replies([critique]), Replies([correction])
    models = Models(
        strategist=cast(Any, Strategist(rationale)),
        texts=cast(Any, {CRITIQUE: critic, CORRECTION: corrector}),
    )
    return run_on(embedded_bars("2003-01-01", "2003-06-30"), PROPOSING, models=models), critic, corrector


@cache
def corrected() -> tuple[Run, Replies, Replies]:
    return proposed(NEEDS, {"text": MENDED})


def of_the_model(run: Run) -> Iterator[dict[str, Any]]:
    yield from (
        row["proposal"] for row in run.of("policy_proposal") if row["model"] == "m" and row["proposal"]
    )


def test_rationale_is_corrected_before_submission_and_nothing_else_changes():
    run, critic, corrector = corrected()
    plain = run_on(
        embedded_bars("2003-01-01", "2003-06-30"),
        PROPOSING,
        models=Models(strategist=cast(Any, Strategist(MENDED))),
    )
    plans = list(of_the_model(run))
    assert {plan["rationale"] for plan in plans} == {MENDED}
    assert plans == list(of_the_model(plain))
    assert len(critic.prompts) == len(corrector.prompts) == len(plans) > 1
    assert json.dumps(RATIONALE) in critic.prompts[0]


def test_correction_is_made_within_the_deadline_of_the_strategist():
    _, critic, corrector = corrected()
    assert max(critic.deadlines_ms + corrector.deadlines_ms) < PROPOSING.llm.strategist_deadline_ms


def test_critique_and_correction_are_journalled_with_the_plan_that_they_are_of():
    run, critic, _ = corrected()
    critiques, corrections, rows = (
        run.of(kind) for kind in ("reflection_critique", "reflection_correction", "deliberation")
    )
    assert len(critiques) == len(corrections) == len(rows) == len(critic.prompts)
    assert {row["proposal_hash"] for row in rows} <= {
        row["proposal_hash"] for row in run.of("policy_proposal")
    }
    assert critiques[0] == {
        "deliberation_id": rows[0]["deliberation_id"],
        "critic": CRITIQUE,
        "assessment": "NEEDS CORRECTION",
        "needs_correction": True,
        "confidence": 0.8,
        "explanation": NEEDS["explanation"],
    }
    assert corrections[0]["applied"] is True
    assert (corrections[0]["original_length"], corrections[0]["corrected_length"]) == (
        len(RATIONALE),
        len(MENDED),
    )


@pytest.mark.parametrize(
    ("critique", "correction"),
    [
        (NEEDS | {"confidence": 0.5}, {"text": MENDED}),
        ({"assessment": "PASS", "confidence": 0.9, "explanation": ""}, {"text": MENDED}),
        ("I am not sure.", {"text": MENDED}),
        (NEEDS, {"text": f"{MENDED} It won 9 of 10 times."}),
        (NEEDS, {"text": f"{MENDED} NVDA does the same."}),
        (NEEDS, {}),
    ],
    ids=["unsure", "passes", "unknown", "new number", "new name", "malformed"],
)
def test_rationale_stays_where_the_correction_may_not_be_applied(critique, correction):
    run, _, _ = proposed(critique, correction)
    assert {plan["rationale"] for plan in of_the_model(run)} == {RATIONALE}


@cache
def contradicted() -> tuple[Run, Replies, Replies]:
    return proposed(NEEDS, {}, f"{RATIONALE} The close is 1.23 and falls. The drawdown is below 90 %.")


def test_rationale_that_contradicts_its_snapshot_loses_what_is_false():
    run, critic, corrector = contradicted()
    assert {plan["rationale"] for plan in of_the_model(run)} == {f"{RATIONALE} The drawdown is below 90 %."}
    assert critic.prompts == [], "what a rule finds asks no critic"
    assert "1.23" in corrector.prompts[0]
    check = run.of("fact_check")[0]
    assert (check["text"], check["counts"]) == (
        "rationale", {"verified": 1, "contradicted": 1, "unverifiable": 0},
    )  # fmt: skip
    assert check["claims"][0]["said"] == "1.23"
    assert [claim["rows"] for claim in check["held"]] == [[{"seq": None, "kind": "policy_snapshot"}]] * 2
    close = next(
        row["snapshot"]["close"]
        for row in run.of("policy_snapshot")
        if row["snapshot_hash"] == check["snapshot_hash"]
    )
    assert check["claims"][0]["would_pass"] == [f"{close:.2f}"]
    index = JournalIndex()
    for row in run.rows:
        index.add(Event(row, json.loads(row.payload)))
    assert check_references(index, finished=True).dangling == ()


def test_rationale_and_narrative_are_stored_without_what_nobody_sees():
    run, _, _ = proposed(NEEDS | {"confidence": 0.1}, {}, f"{RATIONALE}\x1b[2J\u202e")
    assert {plan["rationale"] for plan in of_the_model(run)} == {f"{RATIONALE}[2J"}
    assert {row["cleaned"] for row in run.of("deliberation")} == {2}
    models = Models(
        fast=cast(Any, Narrator(["no verdict"])), slow=cast(Any, Narrator([f"\x07{PLAIN}\u200b"]))
    )
    run = run_on(embedded_bars(*YEARS), FULL, models=models)
    assert {found["report"]["narrative"] for found in run.of("high_level_report")} == {PLAIN}
    assert {row["cleaned"] for row in run.of("deliberation")} == {2}


def test_rationale_of_which_nothing_holds_gives_way_to_that_of_its_base():
    run, _, _ = proposed(NEEDS, {}, "The close is 1.23 and the equity is 4.56, as everybody can see by now.")
    rationales = {plan["rationale"] for plan in of_the_model(run)}
    assert rationales
    assert all(told.startswith("Go ") for told in rationales)


def test_rationale_that_is_short_is_skipped_and_counted_without_a_row():
    run, critic, _ = proposed(NEEDS, {"text": MENDED}, "The range holds.")
    assert critic.prompts == []
    assert run.of("deliberation", "reflection_critique") == []
    assert run.document["deliberation"]["skips"]["too_short"] == len(list(of_the_model(run)))


def test_plans_whose_rationale_is_not_the_models_ask_nobody():
    run, critic, _ = corrected()
    by_rules = [row for row in run.of("policy_proposal") if row["model"] == "rules"]
    assert len(critic.prompts) == len(run.of("policy_proposal")) - len(by_rules) - sum(
        row["proposal"] is None for row in run.of("policy_proposal") if row["model"] == "m"
    )


@cache
def judged_falsely() -> Run:
    lie = {"keep": ["a1"], "reason": "All 60 trades of channel_breakout won. The first action stands."}
    return run_on(
        world(), settings("anthropic"), definitions(), models=Models(judge=cast(Any, Replies([lie])))
    )


def test_reason_of_a_judge_is_held_against_the_report_and_the_false_part_struck():
    run = judged_falsely()
    checks = [row for row in run.of("fact_check") if row["text"] == "judge_reason"]
    verdicts = {row["verdict_id"]: row["verdict"] for row in run.of("replan_verdict")}
    assert checks
    for check in checks:
        assert check["counts"]["verified"] < sum(check["counts"].values())
        assert "All 60 trades" not in verdicts[check["verdict_id"]]["reason"]
        assert "The first action stands." in verdicts[check["verdict_id"]]["reason"]


def test_row_of_a_check_names_the_row_that_each_claim_was_held_against():
    lying = cast(Any, Narrator(["The report is about 9,999 trades."]))
    models = Models(fast=cast(Any, Narrator(["no verdict"])), slow=lying)
    told = run_on(embedded_bars(*YEARS), FULL, models=models)
    for run, kind in ((judged_falsely(), "judge_reason"), (told, "narrative")):
        stored = {row.seq: row.kind for row in run.rows}
        reported = zip(
            run.of("high_level_report"),
            (r.seq for r in run.rows if r.kind == "high_level_report"),
            strict=True,
        )
        reports = {found["report_id"]: seq for found, seq in reported}
        checks = [row for row in run.of("fact_check") if row["text"] == kind]
        assert checks
        for check in checks:
            assert len(check["held"]) == sum(check["counts"].values())
            for row in (row for claim in check["held"] for row in claim["rows"]):
                if row["kind"] == "high_level_report":
                    assert row["seq"] == reports[check["report_id"]]
                assert row["seq"] is None or stored[row["seq"]] == row["kind"]
    named = [row["kind"] for check in checks for claim in check["held"] for row in claim["rows"]]
    assert "high_level_report" in named


def test_run_of_before_these_presets_keeps_its_hash_and_asks_as_it_did():
    config = FULL.payload()
    config["deliberation"] = {"quality": {"fact_check": "claims", "rounds": 3}}
    record = SimpleNamespace(run_id="r", config=config, config_hash=FULL.config_hash)
    earlier = stored_settings(cast(Any, record))
    assert earlier.config_hash == FULL.config_hash
    told = earlier.deliberation
    assert (told.quality.enabled, told.quality.fact_check) == (False, "claims")
    assert (told.reflection_pass.enabled, told.check_reasons) == (False, False)
    assert not told.name_rows
    config["deliberation"] = {
        name: value for name, value in FULL.payload()["deliberation"].items() if name != "name_rows"
    }
    between = stored_settings(cast(Any, record))
    assert (between.config_hash, between.deliberation.name_rows) == (FULL.config_hash, False)
    assert between.deliberation.quality.enabled
    del config["deliberation"]["chunked"]["at_once"], config["deliberation"]["one_reply"]
    config["deliberation"]["name_rows"] = True
    serial = stored_settings(cast(Any, record))
    assert serial.config_hash == FULL.config_hash
    assert (serial.deliberation.chunked.at_once, serial.deliberation.one_reply) == (False, False)
    assert QUALITY_REWRITE not in text_models_of(serial)
    chunked = FULL.deliberation.chunked.model_copy(update={"enabled": True})
    texts = FULL.deliberation.model_copy(update={"chunked": chunked})
    hashed = FULL.model_copy(update={"deliberation": texts}).hashed_values()["deliberation"]
    assert "one_reply" not in hashed
    assert "at_once" not in hashed["chunked"]
    assert serial.deliberation.name_rows
    record.config = FULL.payload()
    assert stored_settings(cast(Any, record)).deliberation.chunked.at_once
    assert QUALITY_REWRITE in text_models_of(stored_settings(cast(Any, record)))
    assert stored_settings(cast(Any, record)).deliberation.quality.enabled


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
        for asked in (text_models_of(made), models_asked(made, "quality") | models_asked(made, "review")):
            writers = {asked.get(name) for name in (QUALITY_REWRITE, REVIEW_REWRITE)}
            assert writers == ({FULL.llm.slow_model} if rewrites else {None})


def test_temperature_of_a_question_is_recorded_as_not_sent_where_the_format_has_none():
    calls = {row["call"]["prompt"]: row["call"] for row in narrated()[0].of("model_call")}
    assert (calls[QUALITY]["temperature"], calls[QUALITY]["temperature_sent"]) == (0.2, False)
    assert (calls[IMPROVEMENT]["temperature"], calls[IMPROVEMENT]["temperature_sent"]) == (0.4, False)
    assert "temperature" not in calls["high_level_reflection"]


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
        (Replies([rewritten(60, BETTER), rewritten(90)] * 9), FULL),
        (Hanging([]), FULL),
    ],
    ids=["scores", "hangs", "writes again", "hangs in one reply"],
)
def test_stored_run_with_texts_is_verified_row_by_row_and_figure_by_figure(critic, of, tmp_path):
    quality = of.deliberation.quality.model_copy(update={"deadline_ms": 50.0})
    made = of.model_copy(update={"deliberation": of.deliberation.model_copy(update={"quality": quality})})
    bars = embedded_bars("2000-03-01", "2001-12-31")
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
                IMPROVEMENT: Replies([{"reasoning": "r", "text": BETTER}]),
            },
        ),
    )

    async def verified() -> tuple[int, ReplayReport]:
        async with await open_store(f"sqlite:///{tmp_path / 't.db'}", create=True) as store:
            kept = await record_run(partial(run_backtest, models=models), made, bars, store, new)
            rows = [row async for row in store.journal.rows(kept.record.run_id, kinds={"deliberation"})]
            return len(rows), await backtest_replay(made, bars, store, kept.record).compare()

    count, replay = asyncio.run(verified())
    assert count > 0
    assert (replay.problem, replay.document, replay.ok) == (None, (), True)
    assert critic.prompts
