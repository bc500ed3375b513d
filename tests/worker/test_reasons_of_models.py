"""A model's reasons in running backtests: looked at again, corrected by others, journalled, played back."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any, cast

import pytest

from agents.language_models.cassette import Cassette, recorded_call
from agents.strategies import reason_pass
from schemas.deliberation import Deliberation
from schemas.settings import LlmSettings, PolicyLoopSettings, ReflectionSettings, Settings
from services.deliberation.forms import CRITIQUE, REASONS
from services.deliberation.presets.reflection_pass import run_pass
from services.journal.index import Event, JournalIndex
from services.journal.references import check_references
from services.model_calls.language_model import ModelReply
from tests.agents.strategies.questions import ABSTAIN, HOLD, propose, question, reason
from tests.worker.shared_runs import Run, embedded_bars, run_on
from worker.models import Models

PROPOSING = Settings(
    policy_loop=PolicyLoopSettings(strategist="model", explore=0.0),  # plans whose rules read the close
    llm=LlmSettings(model="anthropic/claude-haiku-5-5"),
)
PERIOD = ("2003-01-01", "2003-06-30")
GIVEN = [reason("feature", "close"), reason("regime", "trend"), reason("regime", "structure")]
MENDED = [reason("feature", "close"), reason("feature", "atr_14"), reason("case_rate", "all")]
NEEDS = {"assessment": "NEEDS CORRECTION", "confidence": 0.8, "explanation": "the structure is no ground"}


@dataclass
class Replies:
    """Gives one answer to every question; keeps what it was asked."""

    reply: Any
    prompts: list[str] = field(default_factory=list)
    deadlines_ms: list[float] = field(default_factory=list)

    async def complete(self, *, system: str, prompt: str, max_tokens: int, deadline_ms: float) -> ModelReply:
        self.prompts.append(prompt)
        self.deadlines_ms.append(deadline_ms)
        text = self.reply if isinstance(self.reply, str) else json.dumps(self.reply)
        return ModelReply(text, "m", 1, 1, 0.0)


@dataclass
class Strategist:
    """Takes the first plan on offer and names its reasons for it."""

    because: list[dict[str, str]]
    comment: str | None = None

    async def complete(self, *, system: str, prompt: str, max_tokens: int, deadline_ms: float) -> ModelReply:
        request = question(prompt)
        reply = HOLD if request.task == "manage" else ABSTAIN
        if request.task == "choose":
            reply = propose(request.base(), because=self.because, comment=self.comment)
        return ModelReply(json.dumps(reply), "m", 1, 1, 0.0)


def proposed(
    critique: Any, correction: Any, because: list[dict[str, str]] = GIVEN, settings: Settings = PROPOSING
) -> tuple[Run, Replies, Replies]:
    critic, corrector = Replies(critique), Replies(correction)
    models = Models(
        strategist=cast(Any, Strategist(because, "A remark.")),
        texts=cast(Any, {CRITIQUE: critic, REASONS: corrector}),
    )
    return run_on(embedded_bars(*PERIOD), settings, models=models), critic, corrector


@cache
def corrected() -> tuple[Run, Replies, Replies]:
    return proposed(NEEDS, {"because": MENDED, "comment": "Another remark."})


def of_the_model(run: Run) -> Iterator[dict[str, Any]]:
    yield from (row for row in run.of("policy_proposal") if row["model"] == "m" and row["proposal"])


def test_rationale_is_corrected_before_submission_and_nothing_else_changes():
    run, critic, corrector = corrected()
    plain = run_on(embedded_bars(*PERIOD), PROPOSING, models=Models(strategist=cast(Any, Strategist(MENDED))))
    rows = list(of_the_model(run))
    assert [row["proposal"]["because"] for row in rows] == [MENDED] * len(rows)
    assert [row["proposal"] for row in rows] == [row["proposal"] for row in of_the_model(plain)]
    assert {row["comment"] for row in rows} == {"Another remark."}
    assert len(critic.prompts) == len(corrector.prompts) == len(rows) > 1
    assert "the structure is" in critic.prompts[0]
    assert '"atr_14"' in corrector.prompts[0], "the names that there are stand in the question"


def test_rationale_of_a_model_is_written_from_the_snapshot_that_it_was_given():
    run, _, _ = corrected()
    snapshots = {row["snapshot_hash"]: row["snapshot"] for row in run.of("policy_snapshot")}
    for row in of_the_model(run):
        plan, shown = row["proposal"], snapshots[row["snapshot_hash"]]
        rates = shown["base_rates"]
        assert plan["rationale"] == (
            f"{plan['direction'].capitalize()} by {plan['playbook_id']}: close is {shown['close']:.6g}; "
            f"atr_14 is {shown['features']['atr_14']:.6g}; of {rates['population']} resolved trades "
            f"{rates['winners']} won and {rates['losers']} lost."
        )


def test_words_of_critic_and_corrector_with_a_figure_or_a_name_are_stored_nowhere_else_than_their_calls(
    monkeypatch: pytest.MonkeyPatch,
):
    passes = []

    async def pass_over(*given: Any, **payload: Any) -> Deliberation:
        passes.append(await run_pass(*given, **payload))
        return passes[-1]

    monkeypatch.setattr(reason_pass, "run_pass", pass_over)
    spoken = "AAPL won 99 of 99 \x1b[2J"
    needs = NEEDS | {"explanation": spoken}
    run, _, corrector = proposed(needs, {"because": MENDED, "comment": spoken})
    stored = run.of("deliberation", "reflection_critique", "policy_proposal")
    assert corrector.prompts
    assert "won 99" not in json.dumps(stored)
    assert {row["explanation"] for row in run.of("reflection_critique")} == {""}
    assert {row["dropped_comments"] for row in of_the_model(run)} == {1}
    sources = [part.payload() for done in passes for item in done.candidates for part in item.source]
    assert {source["comment"] for source in sources} == {None, ""}


def test_correction_is_made_within_the_deadline_of_the_strategist():
    _, critic, corrector = corrected()
    assert max(critic.deadlines_ms + corrector.deadlines_ms) < PROPOSING.llm.strategist_deadline_ms


def test_critique_and_correction_are_journalled_with_the_plan_that_they_are_of():
    run, critic, _ = corrected()
    critiques, corrections, rows = (
        run.of(kind) for kind in ("reflection_critique", "reflection_correction", "deliberation")
    )
    assert len(critiques) == len(corrections) == len(rows) == len(critic.prompts)
    assert [row["proposal_hash"] for row in rows] == [row["proposal_hash"] for row in of_the_model(run)]
    assert critiques[0] == {
        "deliberation_id": rows[0]["deliberation_id"],
        "critic": CRITIQUE,
        "assessment": "NEEDS CORRECTION",
        "needs_correction": True,
        "confidence": 0.8,
        "explanation": NEEDS["explanation"],
    }
    assert {row["applied"] for row in corrections} == {True}
    index = JournalIndex()
    for row in run.rows:
        index.add(Event(row, json.loads(row.payload)))
    assert check_references(index, finished=True).dangling == ()


def test_run_whose_reasons_were_corrected_is_replayed_row_by_row():
    run, _, _ = corrected()
    calls = [recorded_call(payload, None) for payload in run.of("model_call")]
    again = run_on(embedded_bars(*PERIOD), PROPOSING, cassette=Cassette("all", calls))
    assert again.rows[-1].hash == run.rows[-1].hash


@pytest.mark.parametrize(
    ("critique", "correction"),
    [
        (NEEDS | {"confidence": 0.59}, {"because": MENDED}),
        ({"assessment": "PASS", "confidence": 0.9, "explanation": ""}, {"because": MENDED}),
        ("I am not sure.", {"because": MENDED}),
        (NEEDS, {"because": [reason("feature", "order_flow")], "comment": None}),
        (NEEDS, {"because": [reason("feature", "NVDA"), reason("rule", "invalidation")], "comment": None}),
        (NEEDS, {"because": [], "comment": "none"}),
        (NEEDS, {"because": MENDED, "conviction": 0.99}),
        (NEEDS, {"text": "It won 9 of 10 times."}),
    ],
    ids=["unsure", "passes", "unknown", "no such feature", "no such names", "no reason", "more", "words"],
)
def test_rationale_stays_where_the_correction_may_not_be_applied(critique, correction):
    run, _, _ = proposed(critique, correction)
    rows = list(of_the_model(run))
    assert [row["proposal"]["because"] for row in rows] == [GIVEN] * len(rows)
    assert {row["comment"] for row in rows} == {"A remark."}
    assert "9 of 10" not in json.dumps(run.of("policy_proposal", "deliberation"))


def test_rationale_that_is_short_is_skipped_and_counted_without_a_row():
    run, critic, _ = proposed(NEEDS, {"because": MENDED}, [reason("regime", "trend")])
    assert critic.prompts == []
    assert run.of("deliberation", "reflection_critique") == []
    assert run.document["deliberation"]["skips"]["too_short"] == len(list(of_the_model(run))) > 0


def test_plans_whose_rationale_is_not_the_models_ask_nobody():
    run, critic, _ = corrected()
    assert len(critic.prompts) == len(list(of_the_model(run)))


def test_rationale_in_disguise_is_criticised_on_its_scale_and_stored_on_the_markets():
    hidden = PROPOSING.model_copy(update={"llm": PROPOSING.llm.model_copy(update={"anonymise": True})})
    run, critic, _ = proposed(NEEDS, {"because": MENDED}, settings=hidden)
    plain = list(of_the_model(corrected()[0]))
    assert [row["proposal"]["rationale"] for row in of_the_model(run)] == [
        row["proposal"]["rationale"] for row in plain
    ]
    assert all("close is 100;" in prompt for prompt in critic.prompts)
    assert all("close is 100;" not in row["proposal"]["rationale"] for row in of_the_model(run))


def test_second_reader_and_judge_read_no_comment_of_a_model():
    settings = PROPOSING.model_copy(update={"reflection": ReflectionSettings(mode="full")})
    fast = Replies({"findings": [], "verdict": "pass", "comment": "Seen.", "deferred_needs": []})
    models = Models(strategist=cast(Any, Strategist(MENDED, "A remark.")), fast=cast(Any, fast))
    run = run_on(embedded_bars(*PERIOD), settings, models=models)
    assert fast.prompts
    assert not any("A remark." in prompt for prompt in fast.prompts)
    assert "Seen." in {row["result"]["comment"] for row in run.of("policy_reflection")}
    assert "A remark." not in json.dumps(run.of("policy_frozen", "boundary_verdict"))
