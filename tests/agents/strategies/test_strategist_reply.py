"""The wire model is closed: four answers with their own fields, and nothing beside them."""

import json
from typing import Any

import pytest

from agents.strategies.strategist_reply import (
    FORM,
    FaultKind,
    ProposeReply,
    ReplyFault,
    TightenReply,
    read_strategist_reply,
)
from tests.agents.strategies.bad_replies import BAD, PLAN
from tests.agents.strategies.questions import ABSTAIN, HOLD, change, propose, tighten
from tests.each_case import check_each

GOOD: tuple[dict[str, Any], ...] = (
    PLAN,
    propose("0123456789abcdef"),
    propose("b", argues_for="neither"),
    propose("b", change("activation", None), change("parameter", 2.0, name="stop_atr")),
    propose("b", change("conviction", 1), change("horizon_bars", 3), comment="a remark"),
    tighten(1.5),
    tighten(2),
    HOLD,
    ABSTAIN,
)


@pytest.mark.parametrize("reply", GOOD, ids=lambda reply: reply["answer"])
def test_strategist_reply_of_each_form_is_read(reply):
    read = read_strategist_reply(json.dumps(reply))
    assert not isinstance(read, ReplyFault)
    assert read.answer == reply["answer"]
    assert [reason.payload() for reason in read.because] == reply["because"]
    assert read.model_dump(mode="json", exclude_unset=True).keys() == reply.keys()


def test_strategist_reply_with_white_space_around_it_is_read():
    assert isinstance(read_strategist_reply(f"\n  {json.dumps(PLAN, indent=1)}\n"), ProposeReply)
    assert isinstance(read_strategist_reply(json.dumps(tighten(3))), TightenReply)


@check_each("name", BAD)
def test_strategist_reply_that_does_not_fit_is_a_malformed_one_with_a_short_reason(name):
    fault = read_strategist_reply(BAD[name])
    assert isinstance(fault, ReplyFault)
    assert fault.kind is FaultKind.MALFORMED
    assert 0 < len(fault.message) < 400


def test_strategist_reply_reason_of_a_fault_is_the_same_each_time():
    assert (
        len({read_strategist_reply(BAD["unknown_field"]) for _ in range(3)}) == 1
    )  # it goes into hashed rows


def test_strategist_schema_that_is_sent_offers_no_rule_and_a_reply_with_one_is_still_read():
    """No plan passes with a rule of the model's own, so a model that fills a form is not led to one."""
    sent = json.dumps(FORM.schema)
    assert '"parameter"' in sent
    assert '"invalidation"' not in sent
    rule = {"field": "stop", "value": "close - 2 * atr_14"}
    assert isinstance(read_strategist_reply(json.dumps(propose("b", rule))), ProposeReply)


def test_strategist_schema_has_the_reasons_before_the_decision_and_takes_the_names_of_a_run_alone():
    sent = FORM.naming({"name": ("close", "setup", "stop_atr")}).schema
    assert list(sent["properties"])[:3] == ["because", "argues_for", "answer"]
    named = sent["$defs"]["PlanReason"]["properties"]["name"]
    assert named["enum"] == ["close", "setup", "stop_atr"]
