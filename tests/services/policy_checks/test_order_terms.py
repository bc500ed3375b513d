"""Entries that wait for a price, scale-outs and break-evens: what the checks hold against their levels."""

import pytest
from pydantic import ValidationError

from schemas.playbook import PlaybookDefinition
from schemas.proposal import PolicyProposal
from schemas.vocabulary import Severity
from services.policy_checks.coherence import check_coherence
from services.policy_checks.invariants import check_invariants
from services.policy_checks.plan_levels import read_levels
from tests.each_case import check_each
from tests.services.playbooks.samples import definition
from tests.services.policy_checks.plans import changed, codes, playbook_named, right_request

PLAIN = {
    "stop": "96",
    "target": "110",
    "invalidation": "close < 97",
    "setup": "close > 1",
    "refinement": None,
    "refinement_kind": "stop",
}


def request_with(direction="long", **proposal):
    """A plan around a close of 100, an ATR of 2; only its levels and terms are of interest."""
    request = right_request(direction=direction)
    values = request.proposal.payload() | proposal
    return changed(request, {"proposal": PolicyProposal(**values)})


def found(request):
    return codes(check_coherence(request, read_levels(request)))


def waiting(kind, entry, direction="long", **more):
    return request_with(direction, **(PLAIN | more), entry_kind=kind, entry=entry)


@pytest.mark.parametrize(
    ("kind", "direction", "entry", "wrong"),
    [
        ("limit", "long", "99", False),
        ("limit", "long", "100", False),
        ("limit", "long", "100.5", True),
        ("stop", "long", "101", False),
        ("stop", "long", "100", False),
        ("stop", "long", "99", True),
        ("limit", "short", "101", False),
        ("limit", "short", "99.5", True),
        ("stop", "short", "99", False),
        ("stop", "short", "100", False),
        ("stop", "short", "101", True),
    ],
)
def test_order_terms_entry_on_the_wrong_side_of_the_market_is_found(kind, direction, entry, wrong):
    mirrored = {} if direction == "long" else {"stop": "104", "target": "90", "invalidation": "close > 103"}
    request = request_with(direction, **(PLAIN | mirrored), entry_kind=kind, entry=entry)
    assert ("entry_on_wrong_side" in found(request)) is wrong
    assert "stop_on_wrong_side" not in found(request)


def test_order_terms_entry_message_says_where_it_must_lie():
    request = waiting("stop", "99")
    messages = [finding.message for finding in check_coherence(request, read_levels(request))]
    assert "the stop entry 99.0 of a long plan must lie above the close 100.0" in messages


def test_order_terms_sides_are_measured_from_the_entry():
    beyond = waiting("stop", "112")
    messages = [finding.message for finding in check_coherence(beyond, read_levels(beyond))]
    assert "the target 110.0 of a long plan must lie above the entry 112.0" in messages
    assert "stop_on_wrong_side" in found(waiting("limit", "95"))


def test_order_terms_reward_to_risk_is_measured_from_the_entry():
    assert "reward_to_risk_too_low" not in found(waiting("limit", "100"))
    assert "reward_to_risk_too_low" in found(waiting("stop", "105"))
    levels = read_levels(waiting("stop", "105"))
    assert (levels.risk, levels.reward) == (9.0, 5.0)


def test_order_terms_invalidation_is_tried_from_the_entry_to_the_stop():
    # The stop of a stop entry may lie above the market: the way to it begins at the entry.
    high = waiting("stop", "106", stop="102", target="120", invalidation="crosses_below(close, 103)")
    assert not [code for code in found(high) if code.startswith("invalidation")]
    late = waiting("stop", "106", stop="102", target="120", invalidation="crosses_below(close, 101)")
    assert "invalidation_beyond_stop" in found(late)


def test_order_terms_entry_that_cannot_be_read_is_unknown_and_nothing_is_measured_from_it():
    request = waiting("stop", "prev(high, 1)")
    seen = check_coherence(request, read_levels(request))
    assert [finding.evidence for finding in seen if finding.code == "level_unknown"] == [("entry",)]
    assert read_levels(request).risk is None
    assert not {"reward_to_risk_too_low", "entry_on_wrong_side"} & set(codes(seen))


def test_order_terms_entry_at_zero_is_no_price_and_a_condition_is_no_entry():
    assert "level_not_a_price" in found(waiting("limit", "0"))
    assert "rule_invalid" in found(waiting("limit", "close > 1"))


def test_order_terms_trail_must_be_a_price():
    assert "rule_invalid" in found(request_with(**PLAIN, trail="close > ema_20"))
    assert "rule_invalid" not in found(request_with(**PLAIN, trail="ema_20 - atr_14"))


@pytest.mark.parametrize(
    ("terms", "code"),
    [
        ({"scale_out_r": 2.4, "scale_out_share": 0.5}, None),
        ({"scale_out_r": 2.5, "scale_out_share": 0.5}, "scale_out_beyond_target"),
        ({"scale_out_r": [1.0, 2.4], "scale_out_share": [0.5, 0.25]}, None),
        ({"scale_out_r": [1.0, 2.5], "scale_out_share": [0.5, 0.25]}, "scale_out_beyond_target"),
        ({"break_even_r": 2.4}, None),
        ({"break_even_r": 2.5}, "break_even_beyond_target"),
    ],
)
def test_order_terms_management_at_the_target_is_out_of_reach(terms, code):
    # The stop is 4 away and the target 10: 2.5R.
    seen = [item for item in found(request_with(**PLAIN, **terms)) if item.endswith("_beyond_target")]
    assert seen == ([] if code is None else [code])


def test_order_terms_scaled_out_share_earns_only_its_own_level():
    free = {"invariants.cost_bps_per_side": 0.0, "invariants.min_reward_to_risk": 1.6}
    half = changed(request_with(**PLAIN, scale_out_r=1.0, scale_out_share=0.5), free)
    assert "reward_to_risk_too_low" not in found(half)  # 0.5 * 1 + 0.5 * 2.5 = 1.75
    two = changed(request_with(**PLAIN, scale_out_r=[1.0, 2.0], scale_out_share=[0.5, 0.2]), free)
    assert "reward_to_risk_too_low" not in found(two)  # 0.5 * 1 + 0.2 * 2 + 0.3 * 2.5 = 1.65
    three = changed(request_with(**PLAIN, scale_out_r=[1.0, 1.5], scale_out_share=[0.5, 0.2]), free)
    assert "reward_to_risk_too_low" in found(three)  # 1.55
    most = changed(request_with(**PLAIN, scale_out_r=1.0, scale_out_share=0.75), free)
    assert "reward_to_risk_too_low" in found(most)


@pytest.mark.parametrize(
    ("playbook", "terms", "remedy"),
    [
        ("squeeze_breakout", {"break_even_r": 0.5}, 1.0),
        ("squeeze_breakout", {"break_even_r": None}, 1.0),
        ("channel_breakout", {"break_even_r": 1.0}, None),
        ("mean_reversion", {"scale_out_share": 0.25}, 0.5),
        ("trend_pullback", {"refinement_kind": "stop"}, "limit"),
    ],
)
def test_order_terms_other_than_the_playbooks_are_found_with_their_remedy(playbook, terms, remedy):
    plan = right_request(playbook_named(playbook))
    request = changed(plan, {f"proposal.{name}": value for name, value in terms.items()})
    (finding,) = check_coherence(request, read_levels(request))
    assert (finding.code, finding.severity) == ("orders_differ_from_playbook", Severity.MAJOR)
    assert finding.evidence == tuple(terms)
    assert (finding.remedy.value if finding.remedy else None) == remedy


@pytest.mark.parametrize(
    ("playbook", "change"),
    [
        ("squeeze_breakout", {"proposal.entry": "high + 0.2 * atr_14"}),
        ("momentum_continuation", {"proposal.trail": "ema_10 - 3 * atr_14"}),
        ("momentum_continuation", {"proposal.trail": None}),
    ],
)
def test_order_terms_rule_other_than_the_playbooks_is_found(playbook, change):
    assert "rules_differ_from_playbook" in found(changed(right_request(playbook_named(playbook)), change))


def test_order_terms_blank_entry_is_a_missing_entry():
    assert "missing_entry" in codes(check_invariants(waiting("limit", " ")))
    assert "missing_entry" not in codes(check_invariants(waiting("limit", "99")))


@check_each(
    ("terms", "words"),
    [
        ({"entry": "close"}, "set entry_kind, or remove it"),
        ({"entry_kind": "limit"}, "entry_kind 'limit' needs a price rule"),
        ({"refinement_kind": "limit"}, "refinement_kind 'limit' needs a price rule"),
        ({"scale_out_r": 1.0}, "give both or neither"),
        ({"scale_out_share": 0.5}, "give both or neither"),
        ({"scale_out_r": 1.0, "scale_out_share": 1.0}, "less than 1"),
        ({"scale_out_r": [1.0, 2.0], "scale_out_share": [0.5, 0.5]}, "all together less than 1"),
        ({"scale_out_r": [1.0, 2.0], "scale_out_share": 0.5}, "as many of one as of the other"),
        ({"scale_out_r": [2.0, 1.0], "scale_out_share": [0.5, 0.2]}, "greater than the one before"),
        ({"scale_out_r": 0.0, "scale_out_share": 0.5}, "greater than 0"),
        ({"scale_out_r": 21.0, "scale_out_share": 0.5}, "at most 20"),
        ({"scale_out_r": [1, 2, 3, 4, 5], "scale_out_share": [0.1] * 5}, "at most 4"),
        ({"add_at_r": 1.0}, "give both or neither"),
        ({"add_share": 0.5}, "give both or neither"),
        ({"add_at_r": 1.0, "add_share": 1.5}, "less than or equal to 1"),
        ({"break_even_r": 0.0}, "greater than 0"),
        (
            {"entry_kind": "stop", "entry": "1", "refinement_kind": "limit", "refinement": "close"},
            "does not go with entry_kind 'stop'",
        ),
    ],
)
def test_order_terms_that_do_not_fit_together_are_refused(terms, words):
    with pytest.raises(ValidationError, match=words):
        request_with(**(PLAIN | terms))


def test_order_terms_scale_out_of_one_step_is_the_same_as_a_number_and_as_a_list():
    number = request_with(**PLAIN, scale_out_r=1.0, scale_out_share=0.5).proposal
    listed = request_with(**PLAIN, scale_out_r=[1.0], scale_out_share=[0.5]).proposal
    assert listed.content_hash == number.content_hash
    assert listed.scale_outs == ((1.0, 0.5),)
    assert request_with(**PLAIN).proposal.scale_outs == ()


def test_order_terms_of_a_proposal_with_the_base_fields_alone_are_the_plainest():
    base = (
        "playbook_id", "direction", "thesis", "setup", "activation", "activation_window_bars", "refinement",
        "stop", "target", "invalidation", "horizon_bars", "conviction", "rationale",
    )  # fmt: skip
    whole = right_request(playbook_named("channel_breakout")).proposal
    plain = PolicyProposal.model_validate({name: getattr(whole, name) for name in base})
    assert plain.terms() == {
        "entry_kind": "market",
        "refinement_kind": "stop",
        "break_even_r": None,
        "scale_out_r": None,
        "scale_out_share": None,
        "add_at_r": None,
        "add_share": None,
        "target_moves": False,
        "repeats": False,
        "tightens": True,
    }
    assert (plain.entry, plain.trail) == (None, None)


def test_order_terms_playbook_names_the_direction_that_lacks_its_rule():
    plain = definition()
    with pytest.raises(ValidationError, match=r"rules\.long\.entry: missing"):
        PlaybookDefinition.model_validate(plain.payload() | {"entry_kind": "limit"})
