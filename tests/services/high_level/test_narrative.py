"""The narrative of a report: claims that rules or a model pick, looked up and written by code."""

import asyncio
import json
from typing import Any

import pytest

from prompts import load_prompt
from schemas.settings.deliberation import DeliberationSettings, QualitySettings
from services.claims.check import ClaimResult, check
from services.claims.sections import render
from services.high_level.narrative_reply import FORM, Narrative, read_narrative
from services.high_level.narrator import Narrator as Teller
from services.high_level.report_sections import TOPICS, cells_of, rule_narrative, rule_sections
from services.model_calls.reply_text import MalformedReply
from services.model_calls.wording import Wordings
from services.slow_loop.loop_rows import fact_check_row
from tests.services.deliberation.claim_texts import GRADE, LIE, MEAN, TRADES, UNKNOWN
from tests.services.deliberation.recorded import WHOLE, at_last_report, at_reports, last_report, reports_of
from tests.services.deliberation.scripted import improved, rewritten, scored, section
from tests.services.deliberation.scripted import texts as scripted_texts
from tests.services.high_level.narrators import FALSE, TRUE, Narrator

LINES = ("The mean R of channel_breakout was +0.17R over 141 trades.",
         "The number of trades of channel_breakout was 141.")  # fmt: skip


def told_by(*narratives: Any, texts: Any = None, **quality: Any) -> tuple[Narrative, Narrator]:
    model = Narrator(list(narratives))
    settings = DeliberationSettings(quality=QualitySettings(**quality))
    further = {} if texts is None else {"texts": texts}
    teller = Teller(load_prompt("high_level_reflection"), model, settings, **further)
    return asyncio.run(teller.tell(last_report(), at_last_report())), model


@pytest.mark.parametrize("run", [name for name in WHOLE if name != "whole_costly"])
def test_narrative_of_the_rules_holds_against_the_run_at_each_report(run: str):
    for (report, _), facts in zip(reports_of(run), at_reports(run), strict=True):
        narrative = rule_narrative(report, facts)
        statements = [statement for part in narrative.sections for statement in part.statements]
        assert [part.topic for part in narrative.sections] == list(TOPICS)
        assert len(statements) > 10
        for statement in statements:
            result = check(statement.claim, facts)
            assert isinstance(result, ClaimResult)
            assert render(statement.claim, result) == statement.text
            assert statement.text in narrative.text
            assert statement.rows


def test_narrative_of_a_model_stands_where_its_claims_hold():
    shown, model = told_by(TRUE)
    assert (shown.by_model, shown.refused, len(model.prompts)) == (True, None, 1)
    assert shown.text.splitlines()[1:] == [f"- {line}" for line in LINES]
    assert shown.checked is not None
    assert shown.checked.holds


def test_narrative_that_lies_leaves_the_rule_text_and_its_claims_are_shown():
    shown, model = told_by(FALSE)
    assert (shown.text, shown.by_model) == (rule_narrative(last_report(), at_last_report()).text, False)
    assert len(model.prompts) == 2
    assert shown.checked is not None
    assert shown.checked.count("contradicted") == 1
    assert "claims that do not hold" in str(shown.refused)


def test_narrator_is_shown_which_claims_are_not_so_and_what_is():
    shown, model = told_by((section(MEAN, LIE),), TRUE)
    correction = model.prompts[1].removeprefix(model.prompts[0])
    assert "the mean R of squeeze_breakout is -0.13R" in correction
    assert (shown.by_model, shown.refused) == (True, None)


def test_narrative_claim_that_is_not_corrected_is_dropped_and_counted():
    shown, model = told_by((section(MEAN, LIE, UNKNOWN, comment="AAPL is 3 times better"),))
    assert shown.by_model
    assert shown.text.splitlines() == ["window:", f"- {LINES[0]}"]
    assert len(model.prompts) == 2
    row = fact_check_row(last_report().model_copy(update={"fact_check": shown.checked}), "abc")
    assert row["counts"] == {"verified": 1, "contradicted": 1, "unverifiable": 1, "dropped_comments": 1}


def test_narrative_of_an_earlier_round_stays_where_it_is_the_better_one():
    shown, _ = told_by((section(MEAN, LIE),), (section(LIE, UNKNOWN),))
    assert shown.text.splitlines()[1:] == [f"- {LINES[0]}"]


@pytest.mark.parametrize(("rounds", "requested"), [(0, 1), (1, 2), (2, 3), (3, 4)])
def test_narrator_is_asked_again_as_often_as_rounds_allow(rounds: int, requested: int):
    assert len(told_by(FALSE, rounds=rounds)[1].prompts) == requested


@pytest.mark.parametrize(
    ("reply", "word"),
    [
        ("prose", "not one JSON object"),
        ('{"sections": []}', "sections"),
        ('{"sections": [], "action": "replan"}', "sections"),
        ('{"narrative": "All trades won."}', "sections"),
    ],
)
def test_reply_of_another_shape_is_refused_with_its_reason(reply: str, word: str):
    with pytest.raises(MalformedReply):
        read_narrative(reply)
    shown, _ = told_by(reply)
    assert not shown.by_model
    assert word in str(shown.refused)


def test_narrative_that_claims_nothing_gives_way_to_the_rules():
    shown, _ = told_by((section(comment="A quiet time."),))
    assert (shown.by_model, shown.refused) == (False, "it claims nothing")


def test_narrative_is_scored_and_written_again_until_it_is_enough():
    better = (section(MEAN), section(GRADE, topic="grades"))
    texts, model = scripted_texts(quality=[scored(40), scored(95)], improvement=improved(*better))
    shown, _ = told_by(TRUE, texts=texts, threshold=10.0)
    assert shown.text.splitlines()[1:] == [f"- {line}" for line in LINES], "10 % are enough"
    texts, model = scripted_texts(quality=[scored(0), scored(95)], improvement=improved(*better))
    shown, _ = told_by(TRUE, texts=texts, threshold=50.0)
    assert "grades:" in shown.text
    assert model.count("text_improvement") == 1
    texts, model = scripted_texts(
        quality_rewrite=[rewritten(scored(0), *better), rewritten(scored(95))], quality="", improvement=""
    )
    shown, _ = told_by(TRUE, texts=texts, threshold=30.0)
    assert "grades:" in shown.text


def test_narrators_form_takes_the_names_of_the_run_alone():
    facts = at_last_report()
    schema = json.dumps(FORM.naming({"playbook": facts.playbook_ids, "symbol": facts.symbols}).schema)
    assert all(f'"{name}"' in schema for name in (*facts.playbook_ids, *facts.symbols))
    assert "NVDA" not in schema


def test_narrator_is_shown_each_cell_once_and_no_hash():
    _, model = told_by(TRUE)
    report = last_report()
    assert report.request_hash not in model.prompts[0]
    assert report.prompt_hash is not None
    assert report.prompt_hash not in model.prompts[0]
    cells = cells_of(report, at_last_report())
    assert model.prompts[0].count(json.dumps(cells, separators=(",", ":"), sort_keys=True)) <= 1
    named = [item for item in report.clusters if item.timeframe is None]
    assert len(cells["clusters"]) == len(named)


def test_cells_are_figures_that_a_claim_states():
    facts, cells = at_last_report(), cells_of(last_report(), at_last_report())
    row = next(item for item in cells["clusters"] if item["playbook"] == "channel_breakout")
    figure = row["cells"][cells["columns"]["clusters"].index("mean_r")]
    claim = read_narrative(json.dumps({"sections": [section(MEAN | {"stated": f"{figure:.2f}"})]}))[0].claims[
        0
    ]
    assert isinstance(check(claim, facts), ClaimResult)


def test_rules_claim_on_every_topic_what_a_reader_is_owed():
    sections = {part.topic: part.claims for part in rule_sections(last_report(), at_last_report())}
    assert all(sections[topic] for topic in TOPICS)
    graded = {claim.payload()["of"]["playbook"] for claim in sections["grades"]}
    assert graded == set(at_last_report().playbook_ids)


def test_narrative_of_an_anonymised_run_names_symbols_by_their_own_names_and_its_question_none():
    facts, report = at_last_report(), last_report()
    wording = Wordings.of_run(facts.symbols, anonymise=True).at(report.known_at)
    called = wording.symbols["AAPL"]
    model = Narrator([(section({**TRADES, "of": {"symbol": called}}, {**TRADES, "of": {"symbol": "IBM"}}),)])
    teller = Teller(load_prompt("high_level_reflection"), model)
    shown = asyncio.run(teller.tell(report, facts, wording))
    assert "The number of trades of AAPL was " in shown.text
    assert not any(name in model.prompts[0] for name in facts.symbols)
    assert called in model.prompts[0]
