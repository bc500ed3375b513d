"""Parts of an answer: what a reply bears out, how rows are cited, who plans when a model does not."""

import asyncio

import pytest

from agents.answering.borne_out import stands_in
from agents.answering.citing import Citation, cite, without_marks
from agents.answering.evidence_critic import EvidenceCritic
from agents.answering.of_fills import REASONS
from agents.answering.rules import rule_answer
from agents.answering.statements import Part, Statement, day_of, quote_line
from agents.planning.backed_planner import BackedPlanner
from schemas.errors import ModelError
from schemas.evidence_plan import EvidenceCall, EvidencePlan
from schemas.fact_check import CheckedClaim, FactRow
from schemas.tool import ToolReply
from services.evidence.run_facts import RunFacts
from services.ports import EvidenceQuestion

REPLY = '{"close": 172.014703, "rate": 0.3021, "at": "2013-02-26T14:30:00+00:00", "id": "1d33f265e9e97f21"}'
NEWEST = FactRow(seq=99, kind="run_finished")


@pytest.mark.parametrize(
    ("sentence", "stands"),
    [
        ("The close was 172.01.", True),
        ("The close was 172.02.", False),
        ("The close was 172.", True),
        ("A rate of 30 % at 172.0147.", True),
        ("A rate of 31 %.", False),
        ("On 2013-02-26 the fill 1d33f265e9e97f21 closed.", True),
        ("On 2013-02-26 14:30 it closed.", True),
        ("On 2013-02-27 it closed.", False),
        ("The fill 1d33f265e9e97f22 closed.", False),
        ("The atr_14 is not known.", True),
        ("It lost -172.01.", False),
        ("Asked for 7 trades.", True),
        ("Asked for 8 trades.", False),
    ],
)
def test_sentence_stands_where_its_figures_dates_and_ids_do(sentence, stands):
    assert stands_in(sentence, REPLY, {"limit": 7}) is stands


def call(method="market_snapshot", client="desk", reply=REPLY, is_error=False, number=1):
    told = ToolReply(text=reply, is_error=is_error)
    return EvidenceCall(id=f"c{number}", client=client, method=method, params={}, iteration=1, reply=told)


def test_reply_of_another_server_and_a_failed_call_are_told_as_such():
    texts = [
        statement.text
        for statement in rule_answer([call(), call(reply="ask for less", is_error=True)], NEWEST)
    ]
    assert texts[0].startswith("desk.market_snapshot answered “{")
    assert texts[1] == "desk.market_snapshot could not answer: “ask for less”."


def test_rows_are_numbered_in_order_and_a_figure_without_a_row_goes():
    one, two = FactRow(seq=7, kind="episode"), FactRow(seq=9, kind="exit_filled")
    statements = [
        Statement("It lost 3 trades.", (two, one), Part.WHAT),
        Statement("It says “1. a list”.", (one,), Part.REASON),
    ]
    claim = CheckedClaim(
        text="So IBM won 2.", start=0, end=1, kind="count", said="2", verdict="verified", confidence=1.0,
        rows=(one,),
    )  # fmt: skip
    text = "It lost 3 trades. It says “1. a list”. So IBM won 2. There were 8. Nothing else."
    told, found = cite(text, statements, [claim])
    assert told == "It lost 3 trades [1][2]. It says “1. a list” [2]. So IBM won 2 [2]. Nothing else."
    assert found == (Citation(n=1, kind="exit_filled", seq=9), Citation(n=2, kind="episode", seq=7))


@pytest.mark.parametrize("verdict", ["verified", "contradicted", "unverifiable"])
def test_rows_of_claims_that_are_not_verified_bear_out_no_sentence(verdict):
    claim = CheckedClaim(
        text="So IBM won 2.", start=0, end=1, kind="count", said="2", verdict=verdict, confidence=1.0,
        rows=(FactRow(seq=7, kind="episode"),),
    )  # fmt: skip
    told, found = cite("So IBM won 2. Nothing else.", [], [claim])
    stands = verdict == "verified"
    assert told == ("So IBM won 2 [1]. Nothing else." if stands else "Nothing else.")
    assert bool(found) is stands


@pytest.mark.parametrize(("events", "said"), [(["heartbeat"], ", for heartbeat."), ([], " 2004-06-30.")])
def test_policy_that_was_thought_of_for_no_event_is_told_without_one(events, said):
    facts = {"bar_label": "2004-06-30T00:00:00+00:00", "events": events}
    assert REASONS["policy_event"](facts, {}).endswith(said)


def test_marks_of_a_model_are_its_own_and_go():
    assert without_marks("It lost 3 [1][12]. See [a].") == "It lost 3. See [a]."


def test_what_the_facts_cannot_answer_may_stand_in_another_servers_reply():
    facts = RunFacts(known_at=0, symbols=("IBM",))
    text = "The desk quotes IBM at 172.01. The desk quotes IBM at 180.55."
    critic = EvidenceCritic(facts, calls=[call(method="quote")])
    checked = critic.check(text)
    assert checked is not None
    assert checked.struck_text == "The desk quotes IBM at 172.01."
    assert {row.kind for claim in checked.claims for row in claim.rows} >= {"desk.quote"}
    of_trades = EvidenceCritic(facts, calls=[call("episodes", "thinktwice")]).check(text)
    assert of_trades is not None
    assert of_trades.struck_text == ""


class Planner:
    def __init__(self, plan):
        self.planned = plan

    async def plan(self, question, tools, earlier=()):
        if isinstance(self.planned, Exception):
            raise self.planned
        return self.planned


@pytest.mark.parametrize(
    "first",
    [EvidencePlan(confidence=0, failure="no JSON"), ModelError("no JSON", retryable=True, kind="network")],
)
def test_rules_plan_where_the_model_does_not_and_say_why(first):
    behind = EvidencePlan(confidence=0.95, reasoning="by rules")
    asked = EvidenceQuestion("why?", {})
    plan = asyncio.run(BackedPlanner(Planner(first), Planner(behind)).plan(asked, {}))
    assert (plan.confidence, plan.reasoning) == (0.95, "by rules")
    assert "no JSON" in (plan.failure or "")
    good = EvidencePlan(confidence=0.4)
    assert asyncio.run(BackedPlanner(Planner(good), Planner(behind)).plan(asked, {})) is good


def test_words_of_others_are_one_line_in_quotation_marks_and_cut():
    assert quote_line("a\n“b”\u202e") == "“a 'b'\\u202e”"
    assert quote_line("x" * 300) == f"“{'x' * 200}...”"
    assert day_of("2013-02-26T00:00:00+00:00") == "2013-02-26"
    assert day_of("2013-02-26T14:30:00+00:00") == "2013-02-26 14:30"
