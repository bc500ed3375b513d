"""When the calls are not enough: one failed, no look at the market, no trades or gate, ids not followed."""

import json

import pytest

from agents.planning.completeness import missing
from schemas.evidence_plan import EvidenceCall
from schemas.settings.planner import OWN
from schemas.tool import ToolReply
from services.ports import EvidenceQuestion
from tests.agents.planning.fakes import CONTEXT

FILLS = {"trades": [{"fill_id": f"{number}ab"} for number in range(5)]}


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
    failed = call("trades", "failed")
    assert lacks("trades", failed) == ("c1 thinktwice.trades failed",)
    assert lacks("trades", failed, call("trades", number=2)) == ()
    assert lacks("trades", call("trades"), call("trades", "failed", 2)) == ("c2 thinktwice.trades failed",)
    assert lacks("trades", failed, call("trades", number=2, client="other")) != ()


@pytest.mark.parametrize(
    "text", ["price of IBM", "which regime is MSFT in", "is the price of MSFT about to fall?"]
)
def test_question_of_price_or_regime_needs_a_look_at_the_market(text):
    assert lacks(text, call("trades")) == ("no look at the market",)
    assert lacks(text, call("market")) == ()


def test_trades_in_a_regime_need_no_look_at_the_market():
    assert lacks("trades of trend_pullback in regime up/low", call("trades")) == ()


@pytest.mark.parametrize("text", ["why does squeeze_breakout lose?", "how is trend_pullback doing"])
def test_question_of_a_playbook_needs_trades_or_the_gate(text):
    assert lacks(text, call("playbooks")) == ("no trades and no gate of the playbook",)
    assert lacks(text, call("trades")) == lacks(text, call("gate")) == ()


def test_what_a_playbook_is_needs_neither():
    assert lacks("rules of squeeze_breakout", call("playbooks")) == ()


def test_fill_that_came_back_is_followed_where_its_reasons_are_asked_for():
    text = "why did the last trade lose?"
    assert lacks(text, call("trades", FILLS)) == ("fill_id 0ab not followed",)
    assert lacks(text, call("trades", FILLS), call("why", fill_id="0ab")) == ()
    assert lacks("which trades lost?", call("trades", FILLS)) == ()
    assert lacks(text, call("trades", FILLS, client="other")) == ()


def test_report_that_came_back_is_followed_where_all_of_it_is_asked_for():
    found = call("reports", {"reports": [{"report_id": "r1"}, {"report_id": "r2"}]})
    assert lacks("show the last report in full", found) == ("report_id r1 not followed",)
    assert lacks("show the last report in full", found, call("reports", report_id="r1")) == ()
    assert lacks("what did the last report say?", found) == ()


def test_any_part_of_a_question_may_be_the_one_that_is_missing():
    text = "which trades did squeeze_breakout lose, and what is the price of IBM?"
    assert lacks(text, call("trades")) == ("no look at the market",)
