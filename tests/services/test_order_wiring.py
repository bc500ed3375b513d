"""What a playbook declares about its orders reaches the engine, on the account and on paper alike."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from agents.strategies.rule_strategist import Candidate, proposal_of
from schemas.errors import InvalidProposal
from schemas.playbook import PlaybookDefinition
from schemas.policy import FrozenPolicy
from schemas.settings import EnvelopeSettings, ExecutionSettings
from schemas.vocabulary import POSITION_VARIABLES, Structure, TickEventKind, Trend, VolatilityBand
from services.playbooks.loader import load_playbooks
from services.playbooks.rendering import render_rules
from services.policy_loop.compiler import compile_policy, volatility_rule
from services.policy_loop.snapshot_builder import feature_names, load_columns, playbook_rules
from services.slow_loop.shadow_ledger import ShadowLedger, ShadowLedgers
from services.slow_loop.untraded_signals import UntradedSignals
from tests.services.playbooks.samples import definition
from tests.services.policy_checks.plans import PLAN_IDS, PLANS, right_request
from tests.worker.shared_runs import embedded_bars
from trading_core.bars import BarSeries
from trading_core.kernel.records import STEP_POSITION
from trading_core.market import Market
from trading_core.research.counterfactual import PaperPlans
from trading_core.rules import RuleColumns
from trading_core.rules.columns import SharedColumns
from trading_core.rules.orders import rules_of

EVERYWHERE = {"trend": tuple(Trend), "volatility": tuple(VolatilityBand), "structure": tuple(Structure)}
RULES = {
    "setup": "close > ema_20",
    "activation": "close > ema_20",
    "stop": "close - 2 * atr_14",
    "target": "close + 3 * atr_14",
    "invalidation": "close < ema_20 - 5 * atr_14",
    "entry": "close - 0.5 * atr_14",
    "refinement": "low - 0.5 * atr_14",
    "trail": "highest_10 - 3 * atr_14",
    "exit": "bars_held >= 5 and close < sma_20",
}
SNAPSHOT = right_request().snapshot


def patient(**changes: Any) -> PlaybookDefinition:
    """A long playbook with a limit entry that uses every term there is."""
    values: dict[str, Any] = {
        "rules": {"long": RULES},
        "eligibility": {"long": EVERYWHERE},
        "parameters": {},
        "entry_kind": "limit",
        "refinement_kind": "limit",
        "break_even_r": 1.0,
        "scale_out_r": 0.5,
        "scale_out_share": 0.25,
        "target_moves": True,
        "repeats": True,
        "add_at_r": 1.5,
        "add_share": 0.4,
    }
    return definition(**(values | changes))


def bars_of_a_year() -> BarSeries:
    return embedded_bars("2004-01-01", "2004-12-31")


def policy_of(playbook: PlaybookDefinition) -> FrozenPolicy:
    proposal = proposal_of(Candidate(playbook, "long", 0.0, 0.4, 0, 0.5), SNAPSHOT)
    hashes: dict[str, Any] = dict.fromkeys(
        ("playbook_hash", "snapshot_hash", "proposal_hash", "reflection_hash", "verdict_hash"), "0" * 64
    )
    return FrozenPolicy(
        symbol="AAPL",
        proposal=proposal,
        playbook_id=playbook.id,
        playbook_version=1,
        regime_key="up/mid",
        fingerprint=(),
        risk_fraction=0.005,
        frozen_at=0,
        prompt_hash=None,
        model="rules",
        **hashes,
    )


def ledgers(bars: BarSeries, execution: ExecutionSettings | None = None) -> ShadowLedgers:
    market = Market.of(bars, now=int(bars.close_times[-1]))
    return ShadowLedgers(market, execution or ExecutionSettings(), EnvelopeSettings())


def opened(playbook: PlaybookDefinition, execution: ExecutionSettings | None = None) -> ShadowLedger:
    return ledgers(bars_of_a_year(), execution).open(playbook, ("long",), 0)


@pytest.mark.parametrize(("playbook", "direction"), PLANS, ids=PLAN_IDS)
def test_order_wiring_strategist_proposes_every_rule_and_term_of_the_playbook(playbook, direction):
    proposal = proposal_of(Candidate(playbook, direction, 0.0, 0.4, 0, 0.5), SNAPSHOT)
    assert rules_of(proposal) == render_rules(playbook, direction)
    assert proposal.terms() == playbook.terms()
    assert (proposal.horizon_bars, proposal.activation_window_bars) == (
        playbook.horizon_bars,
        playbook.activation_window_bars,
    )


def test_order_wiring_compiled_policy_says_what_the_playbook_declares():
    bars = bars_of_a_year()
    columns = RuleColumns(bars)
    orders = compile_policy(policy_of(patient()), 1, columns, SharedColumns(columns), "atr_14")
    assert (orders.entry_kind, orders.refines_entry) == ("limit", True)
    assert (orders.break_even_r, orders.scale_outs) == (1.0, ((0.5, 0.25),))
    assert (orders.target_moves, orders.repeats) == (True, True)
    assert (orders.add_at_r, orders.add_share) == (1.5, 0.4)
    numbers = {role: getattr(orders, role) for role in ("entry", "refinement", "trail", "stop", "target")}
    for role, index in (*numbers.items(), ("volatility", orders.volatility)):
        text = "atr_14" if role == "volatility" else RULES[role]
        expected = columns.number(text, 1)
        np.testing.assert_array_equal(columns.bank.numbers[index, : expected.size], expected)
    assert orders.exit_rule.tolist()[:2] == [STEP_POSITION, POSITION_VARIABLES.index("bars_held")]
    truth = columns.boolean("close < sma_20", 1)
    index = int(orders.exit_rule[2 * 3 + 1])
    np.testing.assert_array_equal(columns.bank.truths[index, : truth.size], truth)


def test_order_wiring_trail_that_reads_the_position_is_a_program_and_another_a_column():
    columns = RuleColumns(bars_of_a_year())
    trailing = patient(rules={"long": RULES | {"trail": "entry_price + 0.5 * (close - entry_price)"}})
    orders = compile_policy(policy_of(trailing), 0, columns, SharedColumns(columns))
    assert (orders.trail, orders.trail_rule[0]) == (-1, STEP_POSITION)
    orders = compile_policy(policy_of(patient()), 0, columns, SharedColumns(columns))
    assert orders.trail >= 0
    assert not orders.trail_rule.any()


def test_order_wiring_plain_policy_leaves_every_order_feature_off():
    bars = bars_of_a_year()
    columns = RuleColumns(bars)
    plain = patient(
        rules={"long": {role: RULES[role] for role in ("setup", "stop", "target", "invalidation")}},
        entry_kind="market",
        refinement_kind="stop",
        break_even_r=None,
        scale_out_r=None,
        scale_out_share=None,
        target_moves=False,
        repeats=False,
        add_at_r=None,
        add_share=None,
    )
    orders = compile_policy(policy_of(plain), 0, columns, SharedColumns(columns))
    assert (orders.entry_kind, orders.refines_entry) == ("market", False)
    assert (orders.entry, orders.refinement, orders.trail, orders.volatility) == (-1, -1, -1, -1)
    assert all(np.isnan((orders.break_even_r, orders.add_at_r, orders.add_share)))
    assert (orders.scale_outs, orders.target_moves, orders.repeats) == ((), False, False)
    assert not orders.exit_rule.any()


@pytest.mark.parametrize("role", ["entry", "trail", "exit"])
def test_order_wiring_rule_of_the_wrong_kind_refuses_the_policy(role):
    columns = RuleColumns(bars_of_a_year())
    policy = policy_of(patient(rules={"long": RULES | {role: "close" if role == "exit" else "close > 1"}}))
    with pytest.raises(InvalidProposal, match="cannot be compiled"):
        compile_policy(policy, 0, columns, SharedColumns(columns))


def test_order_wiring_volatility_is_read_by_its_sizing_only():
    assert volatility_rule(ExecutionSettings()) is None
    assert volatility_rule(ExecutionSettings(sizing="volatility")) == "atr_14"


def test_order_wiring_ledger_trades_the_same_orders_on_paper():
    maker = ledgers(bars_of_a_year(), None)
    (engine,) = maker.engines(maker.open(patient(), ("long",), 0))
    state = engine.state[0]
    assert (int(state["policy_entry"]), int(state["policy_refines_entry"])) == (1, 1)
    assert (state["policy_break_even_r"], state["policy_scale_r"][0], state["policy_scale_share"][0]) == (
        1.0,
        0.5,
        0.25,
    )
    assert min(int(state[name]) for name in ("k_entry", "k_refinement", "k_trail")) >= 0


def test_order_wiring_ledger_of_a_limit_entry_differs_from_one_at_the_market():
    resting = opened(patient()).advance(bars_of_a_year().shape[0])
    plain = {role: text for role, text in RULES.items() if role != "entry"}
    market = opened(patient(rules={"long": plain}, entry_kind="market", refinement_kind="stop"))
    assert {trade.entry_price for trade in resting} != {
        trade.entry_price for trade in market.advance(bars_of_a_year().shape[0])
    }


@pytest.mark.parametrize("sized", [{"lot_size": 10.0}, {"fee_per_trade": 5.0}, {"fee_rounding": 1.0}])
def test_order_wiring_ledger_of_one_unit_knows_no_lot_and_no_fixed_fee(sized):
    rows = bars_of_a_year().shape[0]
    plain = opened(patient()).advance(rows)
    assert plain
    assert [episode.r for episode in opened(patient(), ExecutionSettings(**sized)).advance(rows)] == [
        episode.r for episode in plain
    ]


def test_order_wiring_snapshot_knows_what_entry_and_trail_read():
    playbook = patient(rules={"long": RULES | {"entry": "lowest_33", "trail": "ema_77"}})
    assert {"lowest_33", "ema_77"} <= set(feature_names([playbook], "1d"))
    for_minutes = playbook.model_copy(update={"timeframes": ("15m",)})
    assert feature_names([for_minutes], "1d") == (), "its features may not exist on these bars"


Story = Sequence[tuple[TickEventKind, int]]


def read_shown(bars: BarSeries, story: Story, execution: ExecutionSettings, refusal: str = "") -> Any:
    """The untraded signals of one policy's events, by their rows, once all bars are known."""
    signals, proposal = UntradedSignals(execution), policy_of(patient()).proposal
    for kind, row in story:
        label, known_at = int(bars.times[row]), int(bars.close_times[row])
        signals.observe(str(kind), "AAPL", label, known_at, proposal, refusal)
    return signals.select_known(PaperPlans(RuleColumns(bars)), 0, int(bars.close_times[-1]))


def test_order_wiring_unmet_limit_order_is_one_unfilled_signal_from_the_bar_that_accepted_it():
    bars, policy = bars_of_a_year(), policy_of(patient())
    columns = RuleColumns(bars)
    story = [
        (TickEventKind.THESIS_ARMED, 60),
        (TickEventKind.ORDER_ACCEPTED, 61),
        (TickEventKind.ORDER_REFUSED, 64),
        (TickEventKind.THESIS_EXPIRED, 64),
    ]
    (signal,) = read_shown(bars, story, ExecutionSettings(lot_size=10.0), "unfilled")
    assert (signal.reason, signal.label) == ("unfilled", int(bars.times[61]))
    s = bars.symbols.index("AAPL")
    expected = PaperPlans(columns).outcome(policy.proposal, s, 61, bars.shape[0], ExecutionSettings())
    assert expected is not None
    assert signal.counterfactual_r == expected[0]


def test_order_wiring_filled_order_leaves_no_untraded_signal():
    story = [
        (TickEventKind.THESIS_ARMED, 60),
        (TickEventKind.ORDER_ACCEPTED, 61),
        (TickEventKind.ENTRY_FILLED, 62),
        (TickEventKind.ORDER_REFUSED, 80),
    ]
    assert read_shown(bars_of_a_year(), story, ExecutionSettings()) == ()


def test_order_wiring_expired_thesis_without_an_order_is_an_expired_signal():
    bars, story = bars_of_a_year(), [(TickEventKind.THESIS_ARMED, 60), (TickEventKind.THESIS_EXPIRED, 64)]
    (signal,) = read_shown(bars, story, ExecutionSettings())
    assert (signal.reason, signal.label) == ("expired", int(bars.times[60]))


def test_order_wiring_every_rule_of_the_playbooks_is_made_at_the_start_and_none_later():
    columns, definitions = (
        RuleColumns(embedded_bars("2004-01-01", "2004-12-31")),
        load_playbooks(),
    )
    names = load_columns(columns, definitions)
    made = columns.features.made
    assert len(made) == 2 * len(columns.bars.symbols)  # for each symbol what rules read, and the rules
    for s in range(len(columns.bars.symbols)):
        for name in names:
            columns.features.place(name, s)
        for text in playbook_rules(definitions, "1d"):
            columns.place(text, s)
    assert columns.features.made == made
