"""A reply is a diff against a base: applied whole or not at all, and never to loosen anything."""

from typing import Any

import pytest

from agents.strategies.plan_changes import PlanBase, answer_of, changed_plan
from agents.strategies.strategist_reply import (
    Change,
    FaultKind,
    ProposeReply,
    ReplyFault,
    read_strategist_reply,
)
from schemas.canonical import canonical_json
from schemas.proposal import PolicyProposal
from schemas.snapshot import PolicySnapshot
from schemas.strategist_answer import StrategistAnswer
from schemas.vocabulary import PlanKind
from services.playbooks.registry import PlaybookRegistry
from services.playbooks.rendering import render_rules
from tests.agents.strategies.questions import (
    ABSTAIN,
    BECAUSE,
    HOLD,
    change,
    in_position,
    propose,
    reason,
    tighten,
)
from tests.services.policy_checks.plans import PLANS, PLAYBOOKS, playbook_named, proposal_for, right_request
from trading_core.tick_guard import TickGuard

PLAYBOOK = playbook_named("channel_breakout")
BASE = proposal_for(PLAYBOOK, "long")
SNAPSHOT = right_request(PLAYBOOK).snapshot
READER = PlaybookRegistry(PLAYBOOKS, TickGuard(), SNAPSHOT.known_at).reader()


def changes(*parts: dict[str, Any]) -> tuple[Change, ...]:
    reply = read_strategist_reply(canonical_json(propose("b", *parts)))
    assert isinstance(reply, ProposeReply), reply
    return reply.changes


def changed(*parts: dict[str, Any], base: PolicyProposal = BASE) -> PolicyProposal:
    plan = changed_plan(base, changes(*parts), PLAYBOOK)
    assert isinstance(plan, PolicyProposal), plan
    return plan


def answered(
    reply: dict[str, Any], snapshot: PolicySnapshot = SNAPSHOT, *, own_rules: bool = True, tick: float = 0.0
) -> StrategistAnswer | ReplyFault:
    read = read_strategist_reply(canonical_json(reply))
    assert not isinstance(read, ReplyFault), read
    bases = () if snapshot.position else (PlanBase(BASE, "playbook"),)
    return answer_of(read, snapshot, bases, READER, own_rules=own_rules, tick=tick)


def test_plan_says_what_its_author_says_that_it_argues_for():
    for reply in ("long", "short", "neither"):
        answer = answered(propose(PlanBase(BASE, "playbook").id, argues_for=reply))
        assert isinstance(answer, StrategistAnswer)
        assert answer.proposal is not None
        assert answer.proposal.argues_for == reply


@pytest.mark.parametrize(("playbook", "direction"), PLANS)
def test_plan_changes_none_leave_every_base_its_own_hash(playbook, direction):
    base = proposal_for(playbook, direction)
    same = changed_plan(base, (), playbook)
    assert isinstance(same, PolicyProposal)
    assert same.content_hash == base.content_hash
    again = changed_plan(base, changes(change("conviction", base.conviction)), playbook)
    assert isinstance(again, PolicyProposal)
    assert again.content_hash == base.content_hash


def test_plan_changes_touch_the_named_fields_and_no_other():
    plan = changed(
        change("conviction", 0.31),
        change("horizon_bars", 9),
        change("activation_window_bars", 2),
        change("stop", "close - 3 * atr_14"),
        change("trail", None),
    )
    assert (plan.conviction, plan.horizon_bars, plan.activation_window_bars) == (0.31, 9, 2)
    assert (plan.stop, plan.trail) == ("close - 3 * atr_14", None)
    named = {"conviction", "horizon_bars", "activation_window_bars", "stop", "trail"}
    assert {name for name, value in plan.payload().items() if value != BASE.payload()[name]} == named


def test_plan_changes_do_not_depend_on_their_order():
    moved = change("parameter", 3.0, name="stop_atr")
    parts = (change("conviction", 0.3), moved, change("target", "close + 9"))
    assert changed(*parts).content_hash == changed(*reversed(parts)).content_hash


def test_plan_changes_of_a_parameter_are_the_playbooks_rules_with_it():
    plan = changed(change("parameter", 3.0, name="stop_atr"), change("parameter", 10.0, name="channel"))
    wanted = render_rules(PLAYBOOK, "long", {"stop_atr": 3.0, "channel": 10.0}).payload()
    assert {name: getattr(plan, name) for name in wanted} == wanted
    back = changed(change("parameter", 2.0, name="stop_atr"), base=plan)
    assert back.content_hash == BASE.content_hash


def test_plan_changes_of_a_rule_come_after_those_of_a_parameter():
    plan = changed(change("stop", "close - 1"), change("parameter", 3.0, name="stop_atr"))
    assert plan.stop == "close - 1"
    assert plan.target == render_rules(PLAYBOOK, "long", {"stop_atr": 3.0}).target


@pytest.mark.parametrize(
    ("parts", "kind", "shown"),
    [
        ((change("conviction", 0.3), change("conviction", 0.3)), "repeated_change", "conviction"),
        (
            (change("parameter", 3.0, name="stop_atr"), change("parameter", 2.0, name="stop_atr")),
            "repeated_change",
            "stop_atr",
        ),
        ((change("parameter", 3.0, name="leverage"),), "change_refused", "stop_atr"),
        ((change("parameter", 2.25, name="stop_atr"),), "change_refused", "[1.5, 2.0, 2.5, 3.0]"),
        ((change("conviction", 1.01),), "change_refused", "conviction: less than equal (le 1"),
        ((change("conviction", -0.01),), "change_refused", "conviction"),
        ((change("horizon_bars", 0),), "change_refused", "horizon_bars"),
        ((change("horizon_bars", 501),), "change_refused", "500"),
        ((change("activation_window_bars", 51),), "change_refused", "activation_window_bars"),
        ((change("stop", None),), "change_refused", "stop"),
        ((change("setup", None),), "change_refused", "setup"),
        ((change("target", "x" * 1_001),), "change_refused", "target"),
        ((change("entry", "close - atr_14"),), "change_refused", "entry_kind"),
        ((change("conviction", 0.3), change("horizon_bars", 900)), "change_refused", "horizon_bars"),
    ],
)
def test_plan_changes_that_do_not_fit_are_refused_whole_with_the_reason(parts, kind, shown):
    fault = changed_plan(BASE, changes(*parts), PLAYBOOK)
    assert isinstance(fault, ReplyFault)
    assert str(fault.kind) == kind
    assert shown in fault.message


def test_reply_proposing_a_base_unchanged_is_the_base_with_its_own_reasons_in_words_of_code():
    answer = answered(propose(BASE.content_hash[:16], argues_for="long"))
    assert isinstance(answer, StrategistAnswer)
    assert answer.kind is PlanKind.PROPOSE
    plan = answer.proposal
    assert plan is not None
    assert plan.rationale == "Long by channel_breakout: close is 100; the trend is up."
    same = plan.model_copy(update={"because": BASE.because, "rationale": BASE.rationale})
    assert same.content_hash == BASE.content_hash


@pytest.mark.parametrize(
    ("kind", "name", "known"),
    [
        ("feature", "order_imbalance", "'atr_14'"),
        ("feature", "rsi_14", "'close'"),
        ("case_rate", "AAPL", "'all'"),
        ("case_rate", "mean_reversion", "'channel_breakout'"),
        ("recent_bar", "0", "[]"),
        ("regime", "euphoria", "'volatility'"),
        ("lesson", "channel_breakout", "[]"),
        ("rule", "invalidation", "'setup'"),
        ("rule", "stop", "'setup'"),
    ],
)
def test_reply_with_a_reason_that_nothing_shows_is_refused_with_the_names_that_there_are(kind, name, known):
    fault = answered(propose(BASE.content_hash[:16], because=[*BECAUSE, reason(kind, name)]))
    assert isinstance(fault, ReplyFault)
    assert fault.kind is FaultKind.UNKNOWN_REASON
    assert repr(name) in fault.message
    assert known in fault.message


@pytest.mark.parametrize(
    "base", ["", "0" * 16, BASE.content_hash, BASE.content_hash[:15], "channel_breakout"]
)
def test_reply_with_a_base_that_is_not_on_offer_is_refused(base):
    fault = answered(propose(base))
    assert isinstance(fault, ReplyFault)
    assert fault.kind is FaultKind.UNKNOWN_BASE
    assert BASE.content_hash[:16] in fault.message


def test_reply_with_a_rule_of_its_own_is_refused_where_nobody_reads_it():
    reply = propose(BASE.content_hash[:16], change("stop", "close - 2 * no_such_5"))
    assert isinstance(answered(reply), StrategistAnswer)
    fault = answered(reply, own_rules=False)
    assert isinstance(fault, ReplyFault)
    assert fault.kind is FaultKind.CHANGE_REFUSED
    moved = propose(BASE.content_hash[:16], change("parameter", 3.0, name="stop_atr"))
    assert isinstance(answered(moved, own_rules=False), StrategistAnswer)


def test_reply_abstaining_is_an_abstention_with_and_without_a_position():
    for snapshot in (SNAPSHOT, in_position()):
        answer = answered(ABSTAIN, snapshot)
        assert isinstance(answer, StrategistAnswer)
        assert (answer.kind, answer.reason) == (PlanKind.ABSTAIN, "the model abstains: the trend is up")


def test_reply_holding_needs_a_position():
    answer = answered(HOLD, in_position())
    assert isinstance(answer, StrategistAnswer)
    assert answer.kind is PlanKind.HOLD
    fault = answered(HOLD)
    assert isinstance(fault, ReplyFault)
    assert fault.kind is FaultKind.NO_POSITION  # else a policy would stay without its limits being asked


def test_reply_proposing_while_a_position_is_open_is_refused():
    fault = answered(propose(BASE.content_hash[:16]), in_position())
    assert isinstance(fault, ReplyFault)
    assert fault.kind is FaultKind.POSITION_OPEN


@pytest.mark.parametrize(("direction", "stop"), [("long", 98.0), ("short", 102.0)])
def test_reply_tightening_moves_the_stop_towards_the_close(direction, stop):
    answer = answered(tighten(stop), in_position(direction))
    assert isinstance(answer, StrategistAnswer)
    assert (answer.kind, answer.tighter_stop) == (PlanKind.TIGHTEN, stop)


@pytest.mark.parametrize(
    ("direction", "stop"),
    [
        ("long", 96.0), ("long", 95.9), ("long", 100.0), ("long", 104.0), ("long", 1e300),
        ("short", 104.0), ("short", 104.1), ("short", 100.0), ("short", 96.0), ("short", 1e-300),
    ],
)  # fmt: skip
def test_reply_loosening_a_stop_or_passing_the_close_is_refused(direction, stop):
    fault = answered(tighten(stop), in_position(direction))
    assert isinstance(fault, ReplyFault)
    assert fault.kind is FaultKind.STOP_NOT_TIGHTER


def test_reply_tightening_is_judged_on_the_grid_of_the_market():
    answer = answered(tighten(98.26), in_position(), tick=0.5)
    assert isinstance(answer, StrategistAnswer)
    assert answer.tighter_stop == 98.5
    for stop in (96.2, 99.8):  # the grid takes them to the present stop and to the close
        assert isinstance(answered(tighten(stop), in_position(), tick=0.5), ReplyFault)


def test_reply_tightening_without_a_position_is_refused():
    fault = answered(tighten(98.0))
    assert isinstance(fault, ReplyFault)
    assert fault.kind is FaultKind.NO_POSITION
