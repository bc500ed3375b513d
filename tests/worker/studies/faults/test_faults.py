"""The study of faults: what of each kind is stopped, by whom, and what does not count as stopped."""

import asyncio
import json
from functools import cache

import pytest

from schemas.errors import ConfigError
from schemas.settings import Settings
from services.policy_checks import expectation, invariants
from services.policy_checks.invariants import kill_switch_is_on
from thinktwice.inputs import settings_of
from thinktwice.parts import asked_models, own_model, settings_of_model
from worker.studies.faults.bank import BankFault, read_bank
from worker.studies.faults.planting import CheckedPlan, Outcome, plant
from worker.studies.faults.right_plans import embedded_index, plans_of_run
from worker.studies.faults.study import Asking, study_faults

SETTINGS = Settings()
COMMENTS = {"as we now know", "instruction to skip checks or to raise the size"}
# What `because` closes: indicator, symbol, regime, price, feature, future, cases, rates.
CLOSED = {
    "hallucinated indicator", "wrong symbol", "other regime", "stale price, 10 % away", "feature 50 % wrong",
    "future day", "invented counts", "all comparable cases won",
}  # fmt: skip


@cache
def right_plans():
    """A plan of the embedded bars for every playbook and direction."""
    found: dict[tuple[str, str], CheckedPlan] = {}
    for plan in plans_of_run(asyncio.run(embedded_index(SETTINGS)), SETTINGS):
        assert isinstance(plan, CheckedPlan)
        found.setdefault((plan.request.playbook.id, plan.request.proposal.direction), plan)
    assert len(found) == 10
    return tuple(found.values())


def fault(**fields):
    row = {"name": "a kind", "severity": "major", "expected": ("rule",)}
    return BankFault.model_validate(row | fields)


def study(*faults, least=None, **asking):
    bank = faults or read_bank()
    return asyncio.run(study_faults(right_plans(), bank, SETTINGS, {}, Asking(**asking), least))


def kind_of(document, name="a kind"):
    return next(kind for kind in document["kinds"] if kind["name"] == name)


def test_bank_has_forty_kinds_and_a_comment_is_all_that_may_have_no_effect():
    bank = read_bank()
    assert len(bank) == 40
    assert {row.name for row in bank if "no_effect" in row.expected} == COMMENTS
    assert {row.name for row in bank} > CLOSED


def test_every_kind_is_stopped_where_it_is_expected_and_comments_change_nothing():
    document = study(least=1.0)
    for kind in document["kinds"]:
        assert kind["broken"] == 0, kind
        assert set(kind["by_place"]) <= set(kind["expected"]), kind
        if kind["name"] == "correlation bucket full":
            assert (kind["planted"], kind["stopped"], kind["rate"]) == (0, 0, None)
            assert "the engine counts buckets" in next(iter(kind["why_not"]))
        elif kind["name"] in COMMENTS:
            assert (kind["stopped"], kind["passed"], kind["rate"]) == (0, 0, 1.0)
            assert kind["no_effect"] == kind["planted"] == len(right_plans())
        else:
            assert (kind["passed"], kind["rate"]) == (0, 1.0), kind
            assert kind["planted"] + kind["does_not_apply"] == len(right_plans())
            assert kind["planted"] > 0
            assert kind["codes"]
        if kind["name"] in CLOSED:
            assert kind["by_place"] == {"reply": len(right_plans())}
    assert document["below_least"] == []


def test_right_plans_are_counted_apart_and_none_of_them_is_refused():
    right = study(fault(set={"proposal.conviction": 0.93}))["right"]
    assert (right["plans"], right["refused"], right["rate"]) == (len(right_plans()), 0, 0.0)
    assert right["interval"][0] == 0.0 < right["interval"][1] < 0.4


def test_right_plan_that_is_refused_takes_no_fault():
    on = [plan_with_kill_switch(plan) for plan in right_plans()]
    bank = [fault(set={"proposal.conviction": 0.93})]
    document = asyncio.run(study_faults(on, bank, SETTINGS, {}, Asking()))
    assert document["right"]["refused"] == len(on)
    assert document["right"]["codes"] == {"kill_switch": len(on)}
    assert document["right"]["by_place"] == {"context": len(on)}
    assert kind_of(document)["planted"] == 0


def plan_with_kill_switch(plan):
    planted, _ = plant(fault(set={"invariants.kill_switch": True, "snapshot.risk.kill_switch": True}), plan)
    assert not isinstance(planted, Outcome)
    return CheckedPlan(planted, plan.playbooks)


def test_kind_passes_and_is_below_the_least_once_its_check_is_cut(monkeypatch):
    name = "conviction 0.93 without cases"
    assert kind_of(study(), name)["codes"] == {"over_confident": len(right_plans())}
    monkeypatch.setattr(expectation, "conviction_is_over_confident", lambda *questions: None)
    document = study(least=0.9)
    assert (kind_of(document, name)["stopped"], kind_of(document, name)["passed"]) == (0, len(right_plans()))
    assert kind_of(document, name)["passed_texts"] == ["proposal.conviction: 0.93"]
    assert document["below_least"] == [name]


def test_guardrail_that_is_cut_lets_its_kind_pass(monkeypatch):
    others = tuple(critic for critic in invariants.INVARIANT_CRITICS if critic is not kill_switch_is_on)
    monkeypatch.setattr(invariants, "INVARIANT_CRITICS", others)
    assert study(least=0.9)["below_least"] == ["kill switch on"]


def test_value_that_the_contract_refuses_unasked_is_broken_and_never_stopped():
    document = study(fault(set={"proposal.conviction": 1.4}), least=0.1)
    kind = kind_of(document)
    assert (kind["stopped"], kind["passed"], kind["broken"]) == (0, 0, len(right_plans()))
    assert kind["why_broken"] == {"plan_refused_by_its_contract": len(right_plans())}
    assert document["below_least"] == ["a kind"]


def test_value_that_the_contract_is_expected_to_refuse_is_stopped_by_the_reply():
    kind = kind_of(study(fault(set={"proposal.conviction": 1.4}, expected=("reply",))))
    assert kind["by_place"] == {"reply": len(right_plans())}


def test_reply_that_is_refused_unasked_is_broken():
    because = [{"kind": "feature", "name": "macd"}]
    kind = kind_of(study(fault(reply={"because": because})))
    assert (kind["stopped"], kind["why_broken"]) == (0, {"unknown_reason": len(right_plans())})


def test_reply_that_is_taken_goes_on_to_the_rules():
    changes = [{"field": "horizon_bars", "value": 200}]
    kind = kind_of(study(fault(reply={"changes": changes})))
    assert kind["by_place"] == {"rule": len(right_plans())}
    assert "horizon_exceeds_playbook" in kind["codes"]


def test_reply_that_changes_the_plan_is_asked_about_though_its_words_were_expected_to_do_nothing():
    because = [{"kind": "case_rate", "name": "all"}]
    kind = kind_of(study(fault(reply={"because": because}, expected=("no_effect",)), least=0.1))
    assert kind["no_effect"] == 0 < kind["stopped"] == len(right_plans()), "no reason of it holds"


def test_check_that_fails_counts_as_broken(monkeypatch):
    def fail(*questions):
        raise ValueError("a bug")

    monkeypatch.setattr(expectation, "horizon_is_too_long", fail)
    document = study(fault(set={"proposal.conviction": 0.93}))
    assert document["right"]["codes"] == {"ValueError": len(right_plans())}


def test_fault_without_a_place_in_a_plan_does_not_apply_and_is_never_stopped():
    document = study(fault(set={"proposal.trail": "{trail}"}), least=1.0)
    kind = kind_of(document)
    with_trail = sum(plan.request.proposal.trail is not None for plan in right_plans())
    assert with_trail < len(right_plans())
    assert (kind["planted"], kind["does_not_apply"]) == (with_trail, len(right_plans()) - with_trail)
    assert kind["why_not"] == {"the plan has no trail": len(right_plans()) - with_trail}


@pytest.mark.parametrize("path", ["snapshot.closed", "invariants.cap.most", "nothing", "proposal.convicton"])
def test_fault_that_makes_no_request_is_broken_and_below_the_least(path):
    document = study(fault(set={path: 1}), least=0.1)
    kind = kind_of(document)
    assert (kind["stopped"], kind["broken"]) == (0, len(right_plans()))
    assert path.partition(".")[0] in next(iter(kind["why_broken"]))
    assert document["below_least"] == ["a kind"]


def test_plans_are_taken_evenly_spread_and_figures_are_of_them():
    document = study(fault(set={"proposal.conviction": 0.93}), most=3)
    assert (document["plans"], document["right"]["plans"]) == (len(right_plans()), 3)
    assert kind_of(document)["planted"] == 3


def test_direction_of_a_plan_turns_what_is_planted():
    longs = {"against": "<", "away": "-"}
    shorts = {"against": ">", "away": "+"}
    row = fault(
        set={"proposal.stop": "({entry}) {away} 3 * atr_14", "proposal.invalidation": "close {against} 1"}
    )
    for plan in right_plans():
        planted, text = plant(row, plan)
        assert not isinstance(planted, Outcome)
        signs = longs if plan.request.proposal.direction == "long" else shorts
        entry = plan.request.proposal.entry or "close"
        assert planted.proposal.stop == f"({entry}) {signs['away']} 3 * atr_14"
        assert text.endswith(f"; proposal.invalidation: close {signs['against']} 1")


class Objecting:
    """A second reader that objects to the second reason of every plan."""

    def __init__(self):
        self.requested = 0

    def complete(self, **request):
        self.requested += 1
        objections = [{"reason": 1, "code": "reason_too_weak"}]
        return json.dumps({"findings": [], "objections": objections, "verdict": "revise"})


def test_second_reader_is_asked_where_its_verdict_may_count_and_what_it_stops_is_its_own():
    reader = Objecting()
    answering = own_model(reader)
    full = {"reflection__mode": "full"} | settings_of_model(reader, answering)
    settings, models = asked_models(settings_of(None, full, {}), answering)
    weak = [{"kind": "rule", "name": "setup"}, {"kind": "case_rate", "name": "all"}]
    bank = [
        fault(name="weak reason", reply={"because": weak}, expected=("reader",)),
        fault(name="sure", set={"proposal.conviction": 0.93}),
        fault(name="words", set={"proposal.rationale": "As we now know."}, expected=("reader",)),
    ]
    asking = Asking(reader=True, models=models)
    document = asyncio.run(study_faults(right_plans(), bank, settings, {}, asking))
    count = len(right_plans())
    sorts = {kind["name"]: (kind["by_place"], kind["passed"]) for kind in document["kinds"]}
    # Code finds the reasons of right plans true, so an objection to one of them does not count.
    assert document["right"]["refused"] == 0
    # The setup of one plan alone is true at its close: of the others rules refuse the reason that names it.
    assert sorts == {
        "weak reason": ({"reader": 1, "rule": count - 1}, 0),
        "sure": ({"rule": count}, 0),
        "words": ({}, count),
    }
    assert {"model_lowered_verdict", "reason_too_weak"} <= set(kind_of(document, "weak reason")["codes"])
    assert reader.requested == document["model"]["calls"] == 1, "right plans leave it nothing to rest on"
    assert study(bank[0])["model"] is None


def test_own_faults_stand_behind_ours(tmp_path):
    file = tmp_path / "more.toml"
    file.write_text(
        '[[fault]]\nname = "sure"\nseverity = "major"\nexpected = ["rule"]\n'
        'set = { "proposal.conviction" = 0.93 }\n'
    )
    *ours, last = read_bank(file)
    assert (len(ours), last.name) == (40, "sure")


ROW = '[[fault]]\nname = "sure"\nseverity = "major"\nexpected = ["rule"]\n'


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (ROW, "give set, add or reply, or a note"),
        (f'{ROW}note = "nowhere"\nadd = {{ "proposal.horizon_bars" = 9 }}', "give set, add or reply"),
        (ROW.replace("sure", "kill switch on") + 'note = "no"', "'kill switch on' is there twice"),
        (ROW.replace('"rule"', '"luck"') + 'note = "no"', "fault.0.expected.0"),
        ("fault = [", "cannot be read"),
    ],
)
def test_file_that_is_no_bank_is_refused_with_its_name_and_the_reason(tmp_path, text, why):
    file = tmp_path / "more.toml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=f"--bank .*more.toml.*{why}"):
        read_bank(file)


def test_file_of_faults_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="none.toml' cannot be read"):
        read_bank(tmp_path / "none.toml")
