"""Replies of a strategist's model that are none, by what is wrong with them."""

import json
from typing import Any

from agents.strategies.strategist_reply import MOST_CHANGES
from services.model_calls.reply_text import LONGEST_REPLY
from tests.agents.strategies.questions import ABSTAIN, BECAUSE, HOLD, change, propose, reason, tighten

PLAN = propose("0123456789abcdef", change("conviction", 0.4))


def without(reply: dict[str, Any], *names: str) -> dict[str, Any]:
    return {key: value for key, value in reply.items() if key not in names}


BAD: dict[str, str] = {
    "nothing": "",
    "prose": "I would simply buy everything.",
    "two_code_fences": f"```json\n{json.dumps(PLAN)}\n```\n" * 2,
    "prose_around_it": f"Here you are: {json.dumps(PLAN)}",
    "two_replies": json.dumps(HOLD) * 2,
    "cut_short": json.dumps(PLAN)[:-3],
    "a_list": json.dumps([PLAN]),
    "a_string": json.dumps("abstain"),
    "null": "null",
    "nested_too_deeply": "[" * 15_000,
    "too_long": json.dumps(HOLD | {"comment": "x" * LONGEST_REPLY}),
    "reason_of_its_own": json.dumps(HOLD | {"reason": "its exits are in charge"}),
    "reasons_too_many": json.dumps(propose("b", because=BECAUSE * 5)),
    "reasons_none": json.dumps(propose("b", because=[])),
    "reasons_left_out": json.dumps(without(PLAN, "because")),
    "reason_of_no_kind": json.dumps(propose("b", because=[reason("headline", "close")])),
    "reason_with_a_value": json.dumps(propose("b", because=[reason("feature", "close") | {"value": 7.0}])),
    "reason_without_a_name": json.dumps(propose("b", because=[{"kind": "rule"}])),
    "reason_in_words": json.dumps(propose("b", because=["the close broke out"])),
    "thesis_changed": json.dumps(propose("b", change("thesis", "x"))),
    "rationale_changed": json.dumps(propose("b", change("rationale", "x"))),
    "no_answer": json.dumps(without(PLAN, "answer")),
    "no_base": json.dumps(without(PLAN, "base")),
    "no_changes": json.dumps(without(PLAN, "changes")),
    "no_stop": json.dumps(without(tighten(1.0), "stop")),
    "unknown_answer": json.dumps(PLAN | {"answer": "buy"}),
    "answer_in_capitals": json.dumps(HOLD | {"answer": "HOLD"}),
    "answer_is_a_list": json.dumps(HOLD | {"answer": ["hold"]}),
    "hold_with_a_stop": json.dumps(HOLD | {"stop": 1.0}),
    "hold_with_changes": json.dumps(HOLD | {"changes": []}),
    "abstain_with_a_base": json.dumps(ABSTAIN | {"base": "b"}),
    "plan_with_a_stop": json.dumps(PLAN | {"stop": 1.0}),
    "plan_with_a_quantity": json.dumps(PLAN | {"quantity": 1e6}),
    "key_twice": '{"answer": "hold", "answer": "abstain", "because": []}',
    "key_twice_in_a_change": json.dumps(PLAN).replace('"value"', '"value": 0.9, "value"'),
    "base_is_a_number": json.dumps(PLAN | {"base": 7}),
    "changes_are_an_object": json.dumps(PLAN | {"changes": {"conviction": 0.4}}),
    "changes_are_null": json.dumps(PLAN | {"changes": None}),
    "too_many_changes": json.dumps(propose("b", *[change("conviction", 0.1)] * (MOST_CHANGES + 1))),
    "unknown_field": json.dumps(propose("b", change("risk_fraction", 0.5))),
    "field_of_the_plan_that_is_closed": json.dumps(propose("b", change("playbook_id", "other"))),
    "direction_turned": json.dumps(propose("b", change("direction", "short"))),
    "field_is_null": json.dumps(propose("b", change(None, 1))),  # type: ignore[arg-type]
    "change_without_a_value": json.dumps(propose("b", {"field": "conviction"})),
    "change_with_more": json.dumps(propose("b", change("conviction", 0.4, note="x"))),
    "parameter_without_a_name": json.dumps(propose("b", change("parameter", 2.0))),
    "parameter_of_text": json.dumps(propose("b", change("parameter", "2.0", name="stop_atr"))),
    "conviction_of_text": json.dumps(propose("b", change("conviction", "0.4"))),
    "conviction_true": json.dumps(propose("b", change("conviction", True))),
    "conviction_null": json.dumps(propose("b", change("conviction", None))),
    "conviction_nan": json.dumps(propose("b", change("conviction", float("nan")))),
    "conviction_infinite": json.dumps(propose("b", change("conviction", float("inf")))),
    "bars_of_halves": json.dumps(propose("b", change("horizon_bars", 7.5))),
    "bars_of_text": json.dumps(propose("b", change("horizon_bars", "7"))),
    "rule_is_a_number": json.dumps(propose("b", change("stop", 99.5))),
    "stop_nan": json.dumps(tighten(float("nan"))),
    "stop_infinite": json.dumps(tighten(float("inf"))),
    "stop_zero": json.dumps(tighten(0.0)),
    "stop_of_text": json.dumps(HOLD | {"answer": "tighten", "stop": "99"}),
    "lone_surrogate": '{"answer": "hold", "comment": "\\ud800"}',
}
