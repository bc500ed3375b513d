"""The strategist of rules ranks by expectancy and armed plans, then episodes; a position it only manages."""

import asyncio

import pytest

from agents.strategies.configured import configured_rules
from agents.strategies.rule_strategist import Exploration, RuleStrategist
from schemas.no_learn import NoLearnZone
from schemas.reflection import Finding, Remedy
from schemas.settings import PolicyLoopSettings, ReflectionSettings, Settings
from schemas.snapshot import SetupCount
from schemas.vocabulary import CheckName, PlanKind, Severity
from services.playbooks.registry import PlaybookRegistry
from services.policy_checks.bases import SnapshotCheck
from services.ports import Revision
from tests.services.policy_checks.amendments import policy_of, position_of
from tests.services.policy_checks.plans import PLAYBOOKS, acting, changed, expected, right_request
from thinktwice import Playbook, backtest
from trading_core.tick_guard import TickGuard

SNAPSHOT = right_request().snapshot
READER = PlaybookRegistry(PLAYBOOKS, TickGuard(), SNAPSHOT.known_at).reader()
STRATEGIST = RuleStrategist(READER)
ELIGIBLE = sorted({book.id for book, _ in READER.eligible(SNAPSHOT.regime.labels, SNAPSHOT.timeframe)})


def seen(**measured):
    """A snapshot in which every playbook is as good as any other, but for what is `measured` of some."""
    level = {"expectancy_r": 0.1, "n": 10}
    known = tuple(expected(book, **(level | measured.get(book.id, {}))) for book in PLAYBOOKS)
    return SNAPSHOT.model_copy(update={"expectations": known, "setups": ()})


class Check:
    """Codes by playbook of what cannot pass, and playbooks whose invalidation is true."""

    def __init__(self, codes=(), over=(), check=CheckName.COHERENCE):
        self.codes, self.over, self.check = dict(codes), set(over), check

    def findings(self, proposal, snapshot):
        codes = self.codes.get(proposal.playbook_id, ())
        return tuple(
            Finding(check=self.check, code=code, severity=Severity.MAJOR, message=code) for code in codes
        )

    def is_over(self, proposal, snapshot):
        return proposal.playbook_id in self.over


def answered(check, revision=None):
    strategist = RuleStrategist(READER, ("long",), check=check)
    return asyncio.run(strategist.answer(seen(), revision))


def proposed(snapshot):
    proposal = asyncio.run(STRATEGIST.answer(snapshot, None)).proposal
    assert proposal is not None
    return proposal.playbook_id


def test_rule_strategist_has_a_choice_in_this_regime():
    assert len(ELIGIBLE) > 1


@pytest.mark.parametrize("best", ELIGIBLE)
def test_rule_strategist_proposes_the_playbook_with_the_best_expectancy(best):
    assert proposed(seen(**{best: {"expectancy_r": 0.2, "n": 500}})) == best


@pytest.mark.parametrize("youngest", ELIGIBLE)
def test_rule_strategist_proposes_the_least_tried_of_equals(youngest):
    assert proposed(seen(**{youngest: {"n": 9}})) == youngest


def test_rule_strategist_ranks_plans_that_never_met_their_setup_behind_those_that_trade():
    first, second = ELIGIBLE[:2]
    counts = tuple(
        SetupCount(playbook_id=name, direction="long", plans=plans, armed=armed)
        for name, plans, armed in ((first, 20, 0), *((name, 20, 2) for name in ELIGIBLE[1:]))
    )
    lossy = seen(**{second: {"expectancy_r": -0.1, "n": 9}}).model_copy(update={"setups": counts})
    assert proposed(lossy) != first
    assert proposed(lossy.model_copy(update={"setups": ()})) == first


def test_run_beside_a_playbook_whose_setup_is_never_true_trades_every_signal_it_would_alone():
    """It keeps the expectancy of its design for good; its plans sink because none met a setup."""
    rules = {"stop": "close - 3 * atr_14", "exit": "close > sma_5"}
    dips = Playbook("dips", long={"setup": "rsi_2 < 10 and close > sma_200", **rules})
    never = Playbook("a_never", long={"setup": "close > 3 * sma_20", **rules})
    alone, other = (backtest(playbooks=books, symbols=("AAPL",)) for books in ([dips], [never, dips]))
    few, many = (len(result.trades) for result in (other, alone))
    assert many > 50
    assert few > 0.9 * many


def test_rule_strategist_proposes_by_id_when_nothing_else_differs():
    assert proposed(seen()) == ELIGIBLE[0]


def test_rule_strategist_in_a_position_tightens_on_one_r_and_on_a_shock_and_else_holds():
    policy = policy_of()
    position = position_of(policy)
    ahead = SNAPSHOT.model_copy(update={"position": position})
    later = SNAPSHOT.model_copy(update={"position": changed(position, {"r_now": 0.9})})
    shocked = later.model_copy(update={"events": ("volatility_shock",)})
    answers = [asyncio.run(STRATEGIST.answer(item, None)) for item in (ahead, later, shocked)]
    assert [(answer.kind, answer.tighter_stop) for answer in answers] == [
        (PlanKind.TIGHTEN, position.entry_price),
        (PlanKind.HOLD, None),
        (PlanKind.TIGHTEN, 97.5),
    ]


def test_rule_strategist_offers_the_first_base_that_can_pass_and_says_which_it_passed_over():
    first, second = ELIGIBLE[:2]
    answer = answered(Check({first: ("reward_to_risk_too_low", "level_unknown")}))
    assert answer.proposal.playbook_id == second
    (over,) = answer.passed_over
    assert (over.proposal.playbook_id, over.codes) == (first, ("reward_to_risk_too_low", "level_unknown"))
    assert answered(Check({ELIGIBLE[-1]: ("level_unknown",)})).passed_over == ()


def test_rule_strategist_says_what_it_cannot_mend_where_it_could_mend_another():
    class Mended(Check):
        def findings(self, proposal, snapshot):
            longer = Remedy(field="horizon_bars", op="at_most", value=2)
            parts = (("horizon_too_long", longer), ("level_unknown", None))
            return tuple(
                Finding(check=self.check, code=code, severity=Severity.MAJOR, message=code, remedy=remedy)
                for code, remedy in parts
            )

    assert {over.codes for over in answered(Mended()).passed_over} == {("level_unknown",)}


def test_rule_strategist_ranks_a_plan_whose_setup_is_true_now_before_one_that_waits():
    last = ELIGIBLE[-1]
    few = tuple(SetupCount(playbook_id=name, direction="long", plans=50, armed=20) for name in ELIGIBLE)
    waiting = seen().model_copy(update={"setups": few})
    assert proposed(waiting) == ELIGIBLE[0]
    book = next(book for book in PLAYBOOKS if book.id == last)
    rules = {**book.rules, "long": changed(book.rules["long"], {"setup": "close > 0.5 * close"})}
    books = [book for book in PLAYBOOKS if book.id != last] + [changed(book, {"rules": rules})]
    reader = PlaybookRegistry(books, TickGuard(), SNAPSHOT.known_at).reader()
    answer = asyncio.run(RuleStrategist(reader, ("long",)).answer(waiting, None))
    assert answer.proposal is not None
    assert answer.proposal.playbook_id == last


def test_rule_strategist_abstains_with_the_findings_where_no_base_can_pass():
    answer = answered(Check(dict.fromkeys(ELIGIBLE, ("level_unknown",))))
    assert answer.kind is PlanKind.ABSTAIN
    assert answer.reason.startswith("no eligible playbook can pass now: level_unknown")
    assert [over.proposal.playbook_id for over in answer.passed_over] == ELIGIBLE


def test_rule_strategist_ranks_a_base_last_whose_invalidation_is_true():
    assert answered(Check(over=ELIGIBLE[:1])).proposal.playbook_id == ELIGIBLE[1]
    assert answered(Check(over=ELIGIBLE)).proposal.playbook_id == ELIGIBLE[0]


def test_rule_strategist_offers_the_next_base_after_the_refused_one_and_counts_none_twice():
    check = Check({ELIGIBLE[0]: ("level_unknown",)})
    refused = answered(check).proposal
    revision = Revision(refused, (), "the judge refused it", 1)
    answer = answered(check, revision)
    assert answer.passed_over == ()
    assert answer.proposal is None or answer.proposal.playbook_id not in ELIGIBLE[:2]


def test_rule_strategist_gives_reasons_to_every_plan_that_it_hands_out():
    check = Check({ELIGIBLE[0]: ("level_unknown",)})
    answer, ranked = answered(check), RuleStrategist(READER, ("long",), check=check).rank(seen())
    over = [base.proposal for base in answer.passed_over]
    plans = [answer.proposal, *over, *(base.proposal for base in ranked)]
    assert len(over) == 1
    assert all(plan.because and f"Long by {plan.playbook_id}: " in plan.rationale for plan in plans)
    assert ranked[0].proposal == answer.proposal


def test_base_check_finds_a_zone_that_the_words_of_the_reasons_name():
    request = acting(right_request())
    zone = NoLearnZone(start=0, end=1, reason="is true at this close")
    books = PlaybookRegistry((request.playbook,), TickGuard(), SNAPSHOT.known_at).reader()
    bare = changed(request.proposal, {"because": (), "rationale": ""})

    def codes(*zones):
        guarded = changed(request.invariants, {"no_learn_zones": zones})
        check = SnapshotCheck(ReflectionSettings(), books, lambda snapshot: guarded)
        return [found.code for found in check.findings(bare, request.snapshot)]

    assert (codes(), codes(zone)) == ([], ["no_learn_zone_cited"])


def test_base_check_finds_what_the_reflection_would_and_nothing_where_it_is_off():
    request = acting(right_request())
    costly = changed(request.invariants, {"cost_bps_per_side": 400.0})
    book = changed(request.playbook, {})
    reader = PlaybookRegistry((book,), TickGuard(), SNAPSHOT.known_at).reader()
    on, off = (
        SnapshotCheck(ReflectionSettings(mode=mode), reader, lambda snapshot: costly)
        for mode in ("deterministic", "off")
    )
    assert "reward_to_risk_too_low" in {
        found.code for found in on.findings(request.proposal, request.snapshot)
    }
    assert off.findings(request.proposal, request.snapshot) == ()
    over = changed(request.proposal, {"invalidation": "close < 200"})
    assert (on.is_over(over, request.snapshot), off.is_over(over, request.snapshot)) == (True, False)


def shares(explore, bars=200, seed=0, **measured):
    """How often each playbook is proposed over bars that differ in nothing else."""
    strategist, found = RuleStrategist(READER, exploration=Exploration(explore, seed)), []
    for k in range(bars):
        bar = seen(**measured).model_copy(update={"ts_event": SNAPSHOT.ts_event + k})
        found.append(strategist.rank(bar)[0].playbook.id)
    return {name: found.count(name) / bars for name in ELIGIBLE}


def test_exploration_gives_each_unproven_playbook_its_share_and_one_worse_beyond_doubt_none():
    best, unproven, worse = ELIGIBLE[0], ELIGIBLE[1:-1], ELIGIBLE[-1]
    measured = {name: {"expectancy_r": 0.1, "n": 20} for name in unproven}
    measured |= {best: {"expectancy_r": 0.3, "n": 200}, worse: {"expectancy_r": -0.5, "n": 500}}
    found = shares(0.1, **measured)
    assert found[worse] == 0.0
    for name in unproven:
        assert found[name] == pytest.approx(0.1, abs=0.06)
    assert found[best] > 0.6


def test_exploration_of_nothing_and_none_at_all_are_the_ranking_itself():
    best = {ELIGIBLE[0]: {"expectancy_r": 0.3, "n": 200}}
    assert shares(0.0, bars=40, **best)[ELIGIBLE[0]] == 1.0


def test_exploration_draws_the_same_again_and_differently_by_seed_symbol_bar_and_version():
    draw = Exploration(1.0, 3).turn
    moved = SNAPSHOT.model_copy(update={"ts_event": SNAPSHOT.ts_event + 1})
    renamed = SNAPSHOT.model_copy(update={"symbol": "OTHER"})
    drawn = [
        draw(SNAPSHOT, "a"), draw(SNAPSHOT, "b"), draw(moved, "a"), draw(renamed, "a"),
        Exploration(1.0, 4).turn(SNAPSHOT, "a"),
    ]  # fmt: skip
    assert len(set(drawn)) == 5
    assert draw(SNAPSHOT, "a") == drawn[0]


def test_exploration_says_in_its_reason_that_it_was_a_turn():
    strategist = RuleStrategist(READER, exploration=Exploration(1.0))
    assert asyncio.run(strategist.answer(seen(), None)).reason.startswith("its turn to be tried, rank 1 of")


def test_configured_strategist_explores_by_the_settings_share_and_seed():
    for share in (0.0, 1.0):
        settings = Settings(policy_loop=PolicyLoopSettings(explore=share), seed=5)
        turns = [base.turn for base in configured_rules(settings, READER, ("AAA",)).rank(seen())]
        assert (max(turns) < 1.0) is (share == 1.0)
