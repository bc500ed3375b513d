"""Critics without a model, on texts of every kind: what each finds, and what it leaves alone."""

import asyncio
import time

import pytest

from schemas.deliberation import TextCandidate
from schemas.errors import StoreError
from schemas.vocabulary import Severity
from services.deliberation.budget import Budget
from services.deliberation.fact_check import FactCritic, check_facts
from services.deliberation.policies import Round, aggregate
from services.deliberation.refine import FACTS_FAILED, Task
from services.deliberation.rule_critics import (
    NewsCritic,
    RuleCritic,
    cut_off,
    find_cut_off,
    find_no_action,
    find_repeats,
    find_uncovered,
    rule_critics,
)
from services.model_calls.asking import NoReply
from tests.services.deliberation.recorded import recorded, recorded_report

BUDGET = Budget(0, 0)
PLAIN = Task("")


def candidate(text, number=0):
    return TextCandidate(number=number, text=text, hash=str(hash(text)), author="model")


def said_by(critic, text, task=PLAIN, *, before=()):
    rounds = tuple(Round(candidate(old, place), (), aggregate(())) for place, old in enumerate(before))
    return asyncio.run(critic.critique(task, candidate(text, len(before)), rounds, BUDGET))


def codes(critique):
    return [found.code for found in critique.findings]


WHOLE = [
    "",
    "   \n ",
    "One sentence.",
    "A heading only",
    "- first\n- second and",
    "1) first\n2) of the",
    "| a | b |\n|---|---|\n| 1 | 2 |",
    "It is so (see the table).",
    "```\nlet x = [1, 2\n```",
    "He said: “it holds.”",
    "It holds.\n\n# The end of it all is near",
    "市场上涨。为什么？",
    "السوق صعد. هل ترى ذلك كله؟",
    "बाजार ऊपर है. यह अच्छा है और ठीक है।",
    "Der Markt stieg. Er sagte »so ist es«",
    "It holds. And so on…",
    "Good. See https://example.org/page",
]
BROKEN = {
    "It is, as we said,": "middle",
    "The clusters are:": "middle",
    "It won because of the": "middle",
    "It earned more than a": "middle",
    "It holds. This one has no end at all": "no end",
    "It holds. It paid about 5 %": "no end",
    "It holds (and so": "'('",
    "A list: [one, two": "'['",
    "He said “it holds.": "'“'",
    "It holds.\n```\ncode": "fence",
}


@pytest.mark.parametrize("text", WHOLE)
def test_whole_text_is_not_cut_off(text):
    assert cut_off(text) is None


@pytest.mark.parametrize(("text", "reason"), BROKEN.items())
def test_broken_text_is_cut_off(text, reason):
    assert reason in str(cut_off(text))
    said = said_by(RuleCritic("truncation", "completeness", find_cut_off), text)
    assert (said.verdict, said.scores["completeness"], codes(said)) == ("revise", 0.3, ["cut_off"])


@pytest.mark.parametrize(
    ("question", "text", "score"),
    [
        ("", "Whatever.", None),
        ("what is it?", "Whatever.", None),
        ("What happened in the window?", "In the window nothing happens.", 1.0),
        ("What happened in the window?", "The windows are clean.", 0.5),
        ("What happened in the window?", "Nothing.", 0.0),
        ("Which clusters drifted, and which playbooks departed?", "Clusters drift; playbooks depart.", 1.0),
        ("为什么市场下跌", "为什么市场下跌？因为卖出。", 1.0),
        ("Почему рынок упал?", "Рынок упал из-за продаж.", 0.666666667),
    ],
)
def test_words_of_the_question_are_taken_up(question, text, score):
    said = said_by(RuleCritic("coverage", "completeness", find_uncovered), text, Task(question))
    assert said.overall == score
    assert said.verdict == "accept"  # it is a small fault
    assert codes(said) == ([] if score is None or score >= 0.5 else ["not_covered"])


@pytest.mark.parametrize(
    ("question", "text", "score"),
    [
        ("What happened?", "Nothing.", None),
        ("What should be done?", "Nothing is wrong.", 0.4),
        ("What should be done?", "Retire the playbook.", 1.0),
        ("What do you recommend?", "No change.", 1.0),
        ("Is there a plan?", "We wait.", 1.0),
        ("What do you recommend?", "", 0.4),
    ],
)
def test_question_of_what_to_do_wants_an_action(question, text, score):
    said = said_by(RuleCritic("actionability", "actionability", find_no_action), text, Task(question))
    assert said.overall == score
    assert codes(said) == (["no_action"] if score == 0.4 else [])


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("It is so. It is so.", 0),  # too short to count
        ("The account earned a little. The account earned a little.", 1),
        ("The account  earned a\tlittle. THE ACCOUNT EARNED A LITTLE.", 1),
        ("The account earned a little. It lost a little.", 0),
        ("- one of the rows\n- one of the rows\n- one of the rows", 2),
        ("", 0),
    ],
)
def test_sentence_that_stands_twice_is_found(text, count):
    said = said_by(RuleCritic("consistency", "clarity", find_repeats), text)
    assert codes(said) == ["repeats_itself"] * count
    assert said.verdict == "accept"


FIRST = "The cell has n 12 and 0.30R; sixty trades of squeeze_breakout in BTC/USDT, id 0123456789abcdef."


@pytest.mark.parametrize(
    ("later", "news"),
    [
        (FIRST, []),
        ("Sixty trades of SQUEEZE_BREAKOUT; a 12, a -0.3 and 0.300.", []),
        ("It has n 13.", [("new_number", "13")]),
        ("It has 12 trades and 5 % of them won.", [("new_number", "5")]),
        ("It has seventy trades, not sixty.", [("new_number", "seventy")]),
        ("It doubled, in thousands.", [("new_number", "doubled"), ("new_number", "thousands")]),
        ("There were twelve, and no one of them won.", []),
        ("It was trend_pullback that earned.", [("new_name", "trend_pullback")]),
        ("It was ETH.", [("new_name", "ETH")]),
        ("Id 0123456789abcdee.", [("new_number", "0123456789abcdee")]),
        ("In figures of another script: ٧.", [("new_number", "٧")]),
        ("", []),
    ],
)
def test_news_are_numbers_and_names_that_nobody_gave(later, news):
    said = said_by(NewsCritic(), later, before=[FIRST])
    assert [(found.code, found.said) for found in said.findings] == news
    assert said.verdict == ("revise" if news else "accept")


def test_news_may_come_from_question_material_and_run():
    critic = NewsCritic(FactCritic(recorded()))
    told = "squeeze_breakout has n 13, and ETH fell. channel_breakout earned +0.18R a trade over 141 trades."
    assert codes(said_by(critic, told, Task("squeeze_breakout?", "13 of ETH"), before=["It fell."])) == []
    assert "new_number" in codes(said_by(critic, told.replace("141", "142"), before=["It fell."]))
    assert codes(said_by(NewsCritic(), told, before=["It fell."])) != []


def test_first_text_brings_no_news():
    assert codes(said_by(NewsCritic(), "A new number: 77, of ETH.")) == []


def test_each_claim_that_does_not_hold_is_a_finding_of_weight():
    said = said_by(FactCritic(recorded()), "channel_breakout earned +0.28R a trade over 141 trades.")
    assert said.source == "data"
    assert [(found.code, found.said, found.severity) for found in said.findings] == [
        ("contradicted_number", "+0.28R", Severity.MAJOR)
    ]
    assert said.findings[0].would_pass[0] == "+0.18R"
    assert 0.0 < said.scores["accuracy"] < 1.0


@pytest.mark.parametrize("text", ["", "Nothing is known of it.", "市场上涨。", "```\ncode\n```"])
def test_text_without_claims_is_neither_right_nor_wrong(text):
    said = said_by(FactCritic(recorded()), text)
    assert (said.verdict, said.overall, said.findings) == ("accept", None, ())


def test_report_of_the_run_holds():
    said = said_by(FactCritic(recorded()), recorded_report().narrative)
    assert (said.verdict, said.overall) == ("accept", 1.0)


def test_facts_are_read_once_and_only_for_a_text_that_may_claim_something():
    asked = []

    async def read():
        asked.append(1)
        return recorded()

    critic = FactCritic(read)
    assert critic.check("x") is None
    assert said_by(critic, "市场上涨。").verdict == "accept"
    assert asked == []
    for _ in range(3):
        assert said_by(critic, "squeeze breakout outperforms channel breakout by a lot.").verdict == "revise"
    assert asked == [1]


def test_facts_that_cannot_be_read_are_a_failure_of_its_own():
    async def read():
        raise StoreError("the store is locked", retryable=True)

    said = said_by(FactCritic(read), "It has 12 trades.")
    assert isinstance(said, NoReply)
    assert (said.kind, said.detail) == (FACTS_FAILED, "the store is locked")


def test_text_is_checked_once():
    critic = FactCritic(recorded())
    first = critic.check("channel_breakout earned +0.28R a trade.")
    assert critic.check("channel_breakout earned +0.28R a trade.") is first
    assert len(critic.checks) == 1


def test_strike_goes_on_until_what_is_left_holds():
    first, false = "channel_breakout earned +0.18R a trade.", "squeeze_breakout won 99 % of its trades."
    rest = "It lost -0.13R a trade."
    assert check_facts(f"squeeze_breakout was traded. {rest}", recorded()).holds
    assert not check_facts(f"{first} {rest}", recorded()).holds
    assert check_facts(f"{first} {false} {rest}", recorded()).struck_text == first


def test_facts_come_first_and_are_left_out_without_a_run():
    names = [critic.name for critic in rule_critics(FactCritic(recorded()))]
    assert names == ["facts", "news", "truncation", "consistency", "coverage", "actionability"]
    assert [critic.name for critic in rule_critics()] == names[1:]


LONGEST = 51_200
PIECES = ["word ", "x", " ", "\n", "sixty ", "12 ", "(", "a, ", "the\n", "- row 1\n", "no_name ", "“", "。"]


@pytest.mark.parametrize("piece", PIECES)
def test_longest_text_is_read_at_once_without_a_run(piece):
    text = piece * (LONGEST // len(piece))
    started = time.process_time()
    for critic in rule_critics():
        said_by(critic, text, Task(text[:8_000], text), before=[text[:-1] + "9"])
    assert time.process_time() - started < 3.0  # what is quadratic takes minutes
