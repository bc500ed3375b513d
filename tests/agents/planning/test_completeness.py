"""When the calls are not enough: one failed, no look at the market, no episodes or gate, ids not followed."""

import json

import pytest

from agents.planning.completeness import missing
from schemas.evidence_plan import EvidenceCall
from schemas.settings.planner import OWN
from schemas.tool import ToolReply
from services.ports import EvidenceQuestion
from tests.agents.planning.fakes import CONTEXT

FILLS = {"episodes": [{"fill_id": f"{number}ab"} for number in range(5)]}


def call(method, document=None, number=1, client=OWN, **params):
    reply = (
        ToolReply(text="no", is_error=True)
        if document == "failed"
        else ToolReply(text=json.dumps(document or {}))
    )
    return EvidenceCall(
        id=f"c{number}", client=client, method=method, params=params, iteration=1, reply=reply
    )


def lacks(text, *calls):
    return missing(EvidenceQuestion(text, CONTEXT), calls)


def test_failed_call_is_missing_until_another_of_its_tool_answers():
    failed = call("episodes", "failed")
    assert lacks("trades", failed) == ("c1 thinktwice.episodes failed",)
    assert lacks("trades", failed, call("episodes", number=2)) == ()
    assert lacks("trades", call("episodes"), call("episodes", "failed", 2)) == (
        "c2 thinktwice.episodes failed",
    )
    assert lacks("trades", failed, call("episodes", number=2, client="other")) != ()


@pytest.mark.parametrize(
    "text", ["price of IBM", "which regime is MSFT in", "is the market volatile?", "IBM's prcie"]
)
def test_question_of_price_or_regime_needs_a_look_at_the_market(text):
    assert lacks(text, call("episodes")) == ("no look at the market",)
    assert lacks(text, call("market_snapshot")) == ()


def test_trades_in_a_regime_need_no_look_at_the_market():
    assert lacks("trades of trend_pullback in regime up/low", call("episodes")) == ()


@pytest.mark.parametrize(
    "text", ["why does squeeze_breakout lose?", "how is trend pulback doing", "mean_reversion"]
)
def test_question_of_a_playbook_needs_episodes_or_the_gate(text):
    assert lacks(text, call("playbooks")) == ("no episodes and no gate of the playbook",)
    assert lacks(text, call("episodes")) == lacks(text, call("gate_status")) == ()


@pytest.mark.parametrize("text", ["rules of squeeze_breakout", "would a long on IBM by trend_pullback pass?"])
def test_what_a_playbook_is_and_whether_a_plan_passes_need_neither(text):
    assert lacks(text, call("playbooks"), call("check_plan")) == ()


def test_fill_that_came_back_is_followed_where_its_reasons_are_asked_for():
    assert lacks("why was the last trade exited?", call("episodes", FILLS)) == ("fill_id 0ab not followed",)
    assert len(lacks("why did we exit IBM trades?", call("episodes", FILLS))) == 3
    followed = call("explain_fill", fill_id="0ab")
    assert lacks("why was the last trade exited?", call("episodes", FILLS), followed) == ()
    assert lacks("which trades lost?", call("episodes", FILLS)) == ()
    assert lacks("why was the last trade exited?", call("episodes", FILLS, client="other")) == ()


def test_report_that_came_back_is_followed_where_all_of_it_is_asked_for():
    found = call("reports", {"reports": [{"report_id": "r1"}, {"report_id": "r2"}]})
    assert lacks("show the last report in full", found) == ("report_id r1 not followed",)
    assert lacks("show the last report in full", found, call("reports", report_id="r1")) == ()
    assert lacks("what did the last report say?", found) == ()


def test_any_part_of_a_question_may_be_the_one_that_is_missing():
    text = "which trades did squeeze_breakout lose, and what is the price of IBM?"
    assert lacks(text, call("episodes")) == ("no look at the market",)
