import asyncio

import pytest

from prompts import load_prompt
from schemas.settings.deliberation import DeliberationSettings, QualitySettings
from services.deliberation.fact_check import FactCritic
from services.high_level.narrative_reply import Narrative, read_narrative, with_known_numbers
from services.high_level.narrator import Narrator as Teller
from services.slow_loop.loop_rows import fact_check_row
from services.text.news import unknown_numbers
from tests.services.deliberation.recorded import recorded, recorded_report
from tests.services.deliberation.scripted import improved, scored
from tests.services.deliberation.scripted import texts as scripted_texts
from tests.services.high_level.narrators import LIE, TRUE, Narrator

SOURCE = '{"mean_r":-0.41,"n":30,"id":"12a45b789c01d2e3","text":"1,200 bars to 2024-03-05"}'


@pytest.mark.parametrize(
    ("text", "unknown"),
    [
        ("30 trades lost 0.41R each", ()),
        ("1200 bars until 2024-03-05", ()),
        ("31 trades", ("31",)),
        ("lost 0.4R", ("0.4",)),
        ("12 of 30", ("12",)),
        ("see 12a45b789c01d2e3", ()),
        ("see 99a45b789c01d2e3", ("99a45b789c01d2e3",)),
    ],
)
def test_number_that_was_not_computed_is_found(text, unknown):
    assert unknown_numbers(text, SOURCE) == unknown


@pytest.mark.parametrize(
    ("reply", "word"),
    [
        ("[1]", "reply: model type"),
        ('{"narrative": "", "cited_evidence": []}', "narrative: string too short (min_length 1)"),
        ('{"narrative": " ", "cited_evidence": []}', "no words"),
        ('{"narrative": 3, "cited_evidence": []}', "narrative: string type"),
        ('{"narrative": "fine", "cited_evidence": "a"}', "cited_evidence: tuple type"),
        ('{"narrative": "fine", "cited_evidence": ["b"]}', "not offered"),
        ('{"narrative": "fine", "cited_evidence": [], "action": "replan"}', "action: extra forbidden"),
    ],
)
def test_reply_of_another_shape_is_refused_with_its_reason(reply, word):
    told = read_narrative(reply, ["a"])
    assert not told.by_model
    assert told.refused is not None
    assert word in told.refused


def told_by(*narratives: str, **settings) -> tuple[Narrative, Narrator]:
    model = Narrator(list(narratives))
    prompt = load_prompt("high_level_reflection")
    teller = Teller(prompt, FactCritic, model, DeliberationSettings(quality=QualitySettings(**settings)))
    return asyncio.run(teller.tell(recorded_report(), recorded())), model


def test_text_that_lies_leaves_the_rule_text_and_its_claims_are_told():
    told, model = told_by(LIE)
    assert (told.text, told.by_model) == (recorded_report().narrative, False)
    assert len(model.prompts) == 3
    assert told.checked is not None
    assert told.checked.count("contradicted") >= 3
    assert told.refused is not None
    assert "claims that do not hold" in told.refused


def test_model_is_told_which_claims_do_not_hold_and_what_would():
    told, model = told_by(TRUE.replace("0.18", "0.28"), TRUE)
    assert (told.text, told.by_model, told.refused) == (TRUE, True, None)
    correction = model.prompts[1].removeprefix(model.prompts[0])
    assert '"said":"+0.28R"' in correction
    assert "+0.18R" in correction


def test_what_is_left_unresolved_after_the_last_round_is_struck():
    told, model = told_by(f"{TRUE} {LIE}")
    assert (told.text, told.by_model) == (TRUE, True)
    assert told.refused is not None
    assert len(model.prompts) == 3


def test_better_text_of_an_earlier_round_stays():
    told, _ = told_by(f"{TRUE} {LIE}", LIE)
    assert told.text == TRUE


def test_rounds_are_those_of_the_settings():
    assert len(told_by(LIE, rounds=1)[1].prompts) == 1


def test_numbers_alone_are_looked_up_where_the_settings_say_so():
    told, model = told_by(LIE, fact_check="numbers")
    assert (told.by_model, told.checked, len(model.prompts)) == (False, None, 1)
    assert told_by("All trades of channel_breakout won.", fact_check="numbers")[0].by_model


def test_number_of_nowhere_leaves_no_text():
    assert with_known_numbers(Narrative("31 trades", True), SOURCE).refused is not None
    assert with_known_numbers(Narrative("30 trades", True), SOURCE).by_model


def test_row_of_a_check_has_the_claims_that_do_not_hold():
    told, _ = told_by(LIE)
    row = fact_check_row(recorded_report().model_copy(update={"fact_check": told.checked}), "abc")
    assert row["kept"] is False or recorded_report().meta.tier == "consolidated"
    assert {claim["verdict"] for claim in row["claims"]} >= {"contradicted"}
    assert row["counts"]["contradicted"] == len(
        [claim for claim in row["claims"] if claim["verdict"] == "contradicted"]
    )


def test_improved_text_that_is_longer_than_a_report_takes_does_not_stand():
    texts, _ = scripted_texts(quality=[scored(50), scored(95)], improvement=improved(f"{TRUE} " * 90))
    teller = Teller(load_prompt("high_level_reflection"), FactCritic, Narrator([TRUE]), texts=texts)
    told = asyncio.run(teller.tell(recorded_report(), recorded()))
    assert told.text == TRUE
    assert told.deliberation is not None
    codes = [found.code for critique in told.deliberation.critiques for found in critique.findings]
    assert "too_long" in codes


def test_text_that_breaks_off_is_ended_and_says_so():
    told, model = told_by(f"{TRUE} And so the")
    assert (told.text, told.by_model) == (TRUE, True)
    assert told.refused is not None
    assert "breaks off" in told.refused
    assert len(model.prompts) == 3
