"""Questions without a model: what is understood, what is asked back, and nothing beside the point."""

from pathlib import Path
from typing import Any

import pytest

from agents.planning import matcher
from agents.planning.matcher import NotUnderstood, match_question
from services.ports import EvidenceQuestion
from tests.agents.planning.fakes import CONTEXT
from tests.agents.planning.question_bank import BESIDE, INTENTS, TURNED, Calls
from tests.each_case import check_each

WITH_SYMBOL = {**CONTEXT, "recent_symbol": "IBM"}


def calls_of(text: str, context: dict[str, Any] = CONTEXT) -> Calls | None:
    """The calls of a question; None where it is asked back."""
    try:
        return match_question(EvidenceQuestion(text, context)).calls
    except NotUnderstood:
        return None


def back_of(text: str, context: dict[str, Any] = CONTEXT) -> str:
    """What is asked back to a question."""
    with pytest.raises(NotUnderstood) as back:
        match_question(EvidenceQuestion(text, context))
    return str(back.value)


def test_questions_of_the_bank_are_answered_or_asked_back_and_never_beside_the_point():
    others, right, back = [], 0, 0
    for intent, wordings in INTENTS.items():
        for text, wanted in wordings.items():
            made = calls_of(text, WITH_SYMBOL if intent == "context" else CONTEXT)
            right += made in wanted
            back += not wanted and made is None
            if made is not None and made not in wanted:
                others.append((text, made))
    others += [(text, made) for text in BESIDE if (made := calls_of(text)) is not None]
    assert [len(wordings) for wordings in INTENTS.values()] == [10] * 7
    assert len(BESIDE) == 40
    assert others == []
    assert right >= 50
    assert back == 10


@check_each("turn", TURNED)
def test_question_that_one_known_word_turns_is_asked_back(turn):
    answered = {text: made for text in TURNED[turn] if (made := calls_of(text, WITH_SYMBOL)) is not None}
    assert answered == {}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("last 5 IBM trades", {"limit": 5, "symbol": "IBM"}),
        (
            "the 5 worst short trades in 2004",
            {"limit": 5, "order": "worst", "direction": "short", "period": "2004"},
        ),
        ("IBM's last 3 losing trades", {"limit": 3, "outcome": "lost", "symbol": "IBM"}),
        ("Show me the best trade", {"order": "best", "limit": 1}),
        ("trades of strategy squeeze_breakout", {"playbook_id": "squeeze_breakout"}),
        ("How did IBM do in the regime up/low?", {"symbol": "IBM", "regime": "up/low"}),
        ("losers of IBM by regime", {"outcome": "lost", "symbol": "IBM", "by": "regime"}),
        ("trades entered in 2004", {"period": "2004"}),
        ("trades until 2004", {"at": "2004-12-31T23:59:59Z"}),
    ],
)
def test_word_where_it_belongs_becomes_an_argument(text, wanted):
    assert calls_of(text) == [("trades", wanted)]


def test_yes_or_no_is_answered_by_what_was_proven_alone():
    wanted = {"playbook_id": "squeeze_breakout", "regime": "up/low"}
    assert calls_of("Is squeeze_breakout proven in up/low?") == [("gate", wanted)]
    assert calls_of("Is squeeze_breakout defined?") is None


def test_moment_is_told_of_a_state_and_not_of_a_sum():
    at = {"at": "2004-12-31T23:59:59Z"}
    assert calls_of("equity at the end of 2004") == [("account", at)]
    assert calls_of("costs as of 2004") == [("costs", at)]
    assert calls_of("costs at the end of 2004") is None
    assert calls_of("runs as of 2004") is None


def test_names_that_differ_in_case_alone_are_two():
    context = {**CONTEXT, "symbols": ("IBM", "ibm")}
    assert calls_of("trades of ibm", context) == [("trades", {"symbol": "ibm"})]
    assert calls_of("trades of IBM", context) == [("trades", {"symbol": "IBM"})]


def test_symbol_that_may_begin_a_sentence_is_asked_back_there():
    context = {**CONTEXT, "symbols": ("A", "IBM")}
    assert "--symbol" in back_of("A summary of IBM", context)
    assert calls_of("trades of A", context) == [("trades", {"symbol": "A"})]


def test_character_that_stands_for_a_name_within_is_no_name_and_no_filler():
    for code in range(0xE000, 0xE008):
        assert calls_of(f"trades of IBM {chr(code)}") is None


def test_digit_that_is_no_number_is_asked_back():
    assert calls_of("last ² trades") is None
    assert calls_of("last 0 trades") is None


def test_matcher_and_its_words_stay_within_their_lines():
    code = Path(str(matcher.__file__))
    assert len(code.read_text("utf-8").splitlines()) <= 350
    assert len(code.with_name("question_words.toml").read_text("utf-8").splitlines()) <= 200


@pytest.mark.parametrize(
    "text", ["not", "except MSFT", "without stops", "next", "more than 2R", "tomorrow", "over 100", "if held"]
)
def test_word_that_nothing_knows_asks_the_question_back_with_subcommands(text):
    back = back_of(f"Which trades of IBM lost {text}?")
    assert back.startswith("No tool knows ")
    assert "`thinktwice ask trades`" in back


@pytest.mark.parametrize(
    "text", ["short IBM", "close the position in IBM", "hold IBM", "change the rules of squeeze_breakout"]
)
def test_order_in_words_that_a_question_has_is_not_answered(text):
    assert "order" in back_of(text)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("trades in 2005", {"period": "2005"}),
        ("trades from 2004-03 to 2005-06-30", {"period": "2004-03/2005-06-30"}),
        ("trades since 2005", {"period": "2005/2006-12-29"}),
        ("trades as of 2005-06", {"at": "2005-06-30T23:59:59Z"}),
        ("trades on 2005-06-30", {"period": "2005-06-30"}),
        ("the last 7 trades", {"limit": 7}),
        ("wins by symbol", {"outcome": "won", "by": "symbol"}),
    ],
)
def test_one_time_and_one_number_become_arguments(text, wanted):
    assert calls_of(text) == [("trades", wanted)]


@pytest.mark.parametrize("text", ["return in 2005", "drawdown from 2004 to 2005", "regime of IBM in 2005"])
def test_span_is_asked_back_where_the_tool_tells_of_one_moment(text):
    assert calls_of(text) is None


def test_day_that_no_calendar_has_names_nothing():
    with pytest.raises(NotUnderstood) as back:
        match_question(EvidenceQuestion("trades on 2005-02-31", CONTEXT))
    assert back.value.names_nothing


def test_mistyped_name_is_a_guess_and_another_word_is_none():
    matched = match_question(EvidenceQuestion("rules of squeeze_braekout", CONTEXT))
    assert matched.calls == [("playbooks", {"playbook_id": "squeeze_breakout"})]
    assert matched.guessed
    assert calls_of("rules of the universe") is None


@pytest.mark.parametrize("name", ["Q[red]X", "--run", "A.B-C", "BTC/USD", "$SPX"])
def test_hostile_name_of_a_run_is_that_name_alone(name):
    context = {**CONTEXT, "symbols": (name, "IBM")}
    assert calls_of(f"which trades of {name} lost?", context) == [
        ("trades", {"outcome": "lost", "symbol": name})
    ]


@pytest.mark.parametrize("name", ["trades", "lost", "which", "why"])
def test_name_that_is_a_word_as_well_is_asked_back_with_the_option(name):
    context = {**CONTEXT, "playbooks": (name, "squeeze_breakout")}
    assert "--playbook" in back_of(f"which trades of {name} lost?", context)


def test_symbol_in_capitals_is_none_of_the_words():
    context = {**CONTEXT, "symbols": ("IT", "ALL", "IBM")}
    assert calls_of("which trades of IT lost?", context) == [("trades", {"outcome": "lost", "symbol": "IT"})]
    assert calls_of("which of all trades lost?", context) == [("trades", {"outcome": "lost"})]
    assert "--symbol" in back_of("WHICH OF ALL TRADES LOST?", context)


def test_calls_of_several_names_have_one_order():
    assert calls_of("trades of MSFT and IBM") == calls_of("trades of IBM and MSFT")
