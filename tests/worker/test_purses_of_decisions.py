"""Decisions are paid before texts: the judge's model is asked on every report, whatever texts spend."""

import asyncio
import json
from functools import cache
from typing import Any

import pytest

from prompts import load_prompt
from schemas.settings import LlmSettings, Settings
from schemas.settings.llm import EventLimits, ModelPrice
from services.high_level.report_sections import TOPICS
from services.model_calls.quoting import count_noun
from tests.agents.language_models.wire_formats import FORMATS
from tests.agents.language_models.wire_server import WireServer, answer, events, message, stream
from tests.worker.shared_runs import Run, losing_settings, run_on
from tests.worker.test_judge_with_a_model import Scripted, definitions, world
from tests.worker.wire import AGREES, wire
from worker.feeds.sample_data.worlds import make_world
from worker.models import Models
from worker.pages.text_parts import text_of
from worker.runs.run_text import summary_parts

FREE = (ModelPrice(model="claude-test", input_usd=0.0, output_usd=0.0),)
SCORES = {"completeness": 60, "accuracy": 60, "actionability": 60, "confidence": 60}
LISTS: dict[str, list[str]] = {"issues": ["thin"], "suggestions": [], "missing_elements": []}
JUDGE = "judge_replanning"


class ManyWords:
    """Handler of a wire server: every text is scored too low, and written again in other words."""

    def __init__(self) -> None:
        self.server = WireServer("")
        self.requested: list[str] = []
        names = (
            "high_level_reflection", "text_outline", "text_section", "text_quality_rewrite", "text_review",
            "text_review_rewrite", "text_improvement", "evidence_planner", JUDGE,
        )  # fmt: skip
        self._names = {load_prompt(name).system: name for name in names}

    async def __call__(self, writer: asyncio.StreamWriter) -> None:
        body = self.server.requests[-1][1]
        name = self._names.get(FORMATS["anthropic"].system_of(body), "")
        self.requested.append(name)
        text = json.dumps(self._reply(name))
        handle = stream(events(text)) if body.get("stream") else answer(message(text))
        await handle(writer)

    def _reply(self, name: str) -> dict[str, Any]:
        claim = {"kind": "value", "measure": "trades", "of": {"period": f"{1990 + len(self.requested) % 40}"}}
        part = {"claims": [claim], "comment": None}
        words = {"reasoning": "other words", "sections": [{"topic": "window", **part}]}
        review = {"score": 0.5, "critique": "thin", "improvements": ["more"]}
        replies: dict[str, dict[str, Any]] = {
            JUDGE: {"reasons": [], "comment": None, "keep": []},
            "high_level_reflection": {"sections": words["sections"]},
            "text_outline": {"chunks": list(TOPICS[:4])},
            "text_section": {"reasoning": "other words", **part},
            "text_quality_rewrite": {**SCORES, **LISTS, **words},
            "text_review": review,
            "text_review_rewrite": {**review, **words},
            "text_improvement": words,
            "evidence_planner": {"confidence": 1.0, "clarification": None, "tools": []},
        }
        return replies.get(name, AGREES)


def chatty(planner: str = "rules", **llm: Any) -> Settings:
    """The defaults with a judge's model, narratives that are reviewed, and long ones in sections."""
    base = losing_settings()
    texts = base.deliberation
    texts = texts.model_copy(
        update={
            "review": texts.review.model_copy(update={"enabled": True}),
            "chunked": texts.chunked.model_copy(update={"enabled": True}),
            "narrative_tokens": texts.chunked.auto_threshold,
        }
    )
    models = {"model": "anthropic/claude-test"}
    return base.model_copy(
        update={
            "reflection": base.reflection.model_copy(update={"mode": "full"}),
            "judge": base.judge.model_copy(update={"replan": "model"}),
            "planner": base.planner.model_copy(update={"judge": planner}),
            "deliberation": texts,
            "llm": LlmSettings.model_validate({"prices": FREE, **models, **llm}),
        }
    )


def chatty_run(monkeypatch: pytest.MonkeyPatch, settings: Settings, bars: int) -> tuple[Run, ManyWords]:
    handler = ManyWords()
    with wire(monkeypatch, handler, handler) as server:
        handler.server = server
        made = run_on(make_world("reverting", seed=3, bars=bars, symbols=6), settings, definitions())
    return made, handler


def fallbacks(made: Run) -> list[str | None]:
    return [row["verdict"]["fallback"] for row in made.of("replan_verdict")]


@pytest.mark.parametrize(("planner", "bars", "reports"), [("rules", 1_000, 6), ("model", 420, 2)])
def test_judge_whose_report_has_many_words_is_asked_on_every_report(
    planner: str, bars: int, reports: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, handler = chatty_run(monkeypatch, chatty(planner), bars)
    assert (fallbacks(made), handler.requested.count(JUDGE)) == ([None] * reports, reports)
    assert handler.requested.count("evidence_planner") == (reports if planner == "model" else 0)
    document = made.document
    assert (document["judge"]["to_ask"], document["judge"]["asked"]) == (reports, reports)
    assert document["deliberation"]["sections"] == 4 * reports, "what is left is for the text"
    assert document["model"]["refused"]["text"] == sum(document["model"]["cut_overs"].values()) > 0
    assert document["model"]["refused"]["decision"] == document["model"]["refused"]["evidence"] == 0
    refused = made.of("model_budget")
    assert {(row["purse"], row["scope"], row["limit"]) for row in refused} == {("text", "event", "calls")}


@cache
def unheard_run() -> Run:
    """A run none of whose models may be asked."""
    settings = chatty(per_event=EventLimits(calls=0))
    model = Scripted({"reasons": [], "comment": None, "keep": []})
    made = run_on(world(), settings, definitions(), models=Models(model, model, None, model))
    assert model.requested == 0
    return made


def test_judge_that_was_never_asked_and_texts_that_failed_are_counted_and_said_plainly() -> None:
    document = unheard_run().document
    due = len([why for why in fallbacks(unheard_run()) if why != "nothing_to_drop"])
    assert due > 0
    judge = document["judge"]
    assert (judge["to_ask"], judge["asked"], judge["not_asked"]) == (due, 0, {"budget": due})
    written = len(fallbacks(unheard_run()))
    assert document["deliberation"]["statuses"]["failed"] == written
    assert document["model"]["refused"]["decision"] >= due
    for full in (False, True):
        text = text_of(summary_parts(document, full=full))
        reports = count_noun(due, "report")
        assert f"the judge's model was never asked: 0 of {reports}, budget {due}; the rules" in text
        assert f"model asked on 0 of {reports}" in text
        assert f"{written} of {written}: the rules' text stands" in text
        assert "refused by a limit" in text


def test_judge_of_rules_is_not_told_to_be_unheard_run() -> None:
    made = run_on(world(), losing_settings(), definitions())
    assert made.document["judge"]["to_ask"] == 0
    assert "never asked" not in text_of(summary_parts(made.document))
