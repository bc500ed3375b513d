"""Each fact is in exactly one report: the first whose clock is at or past the time when it was known."""

import json
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from schemas.policy import FrozenPolicy
from schemas.proposal import PolicyProposal
from schemas.settings import Settings
from schemas.slow_reflection import HighLevelReflectionRequest, UntradedSignal
from schemas.vocabulary import RecommendedAction
from services.journal.chain import JournalRow
from services.slow_loop.cadence import Run
from services.slow_loop.loop_facts import LoopFacts
from services.slow_loop.past_runs import PastRun
from trading_core.bars import BarSeries
from trading_core.research.counterfactual import PaperPlans
from trading_core.rules import RuleColumns

DAY = 86_400 * 10**9
ROWS, STOPS_TRADING, TRADES_AGAIN = 200, 50, 120
HASHED = ("playbook_hash", "snapshot_hash", "proposal_hash", "reflection_hash", "verdict_hash")


def day(number: int) -> int:
    return (20_000 + number) * DAY


def row(
    seq: int, kind: str, at: int, known_at: int, payload: dict[str, Any], symbol: str = "B"
) -> JournalRow:
    return JournalRow(seq, at, known_at, kind, symbol, json.dumps(payload), None, "", "")


def report(clock: int) -> PastRun:
    return PastRun(clock, clock, clock, str(clock), 0, RecommendedAction.HOLD)


def bars() -> BarSeries:
    """Two quiet symbols; `B` stops trading without a word, and trades again when it was given up."""
    level = np.full((ROWS, 2), 100.0)
    present = np.ones((ROWS, 2), bool)
    present[STOPS_TRADING:TRADES_AGAIN, 1] = False

    def prices(shift: float) -> NDArray[np.float64]:
        return np.ascontiguousarray(np.where(present, level + shift, np.nan))

    times = np.array([day(number) for number in range(ROWS)])
    return BarSeries(
        times, ("A", "B"), "1d", "open", prices(0), prices(1), prices(-1), prices(0), prices(0), present
    )


def proposal(target: float = 50.0) -> PolicyProposal:
    return PolicyProposal(
        playbook_id="x",
        direction="long",
        thesis="t",
        setup="close > 0",
        stop="close - 50",
        target=f"close + {target}",
        invalidation="close < 0",
        horizon_bars=10,
        conviction=0.5,
        rationale="r",
    )


def begun() -> LoopFacts:
    """The facts of a run after its first row."""
    facts = LoopFacts(Settings())
    facts.add(row(0, "genesis", day(0), day(0), {"timeframe": "1d", "label": "open"}))
    return facts


def read_requests(
    facts: LoopFacts, clock: int, columns: RuleColumns | None = None
) -> HighLevelReflectionRequest:
    return facts.request(
        Run(clock, "slot", structural_allowed=True), clock, None if columns is None else PaperPlans(columns)
    )


def journalled_block(s: int, at_row: int, arrived_row: int, plan: PolicyProposal) -> LoopFacts:
    """A proposal blocked on one bar, whose answer arrived at the close of another."""
    series = bars()
    label, symbol = int(series.times[at_row]), series.symbols[s]
    known_at = int(series.close_times[arrived_row])
    blocked = {"amendment": None, "result": {"status": "block", "findings": []}}
    shown: list[tuple[str, dict[str, Any]]] = [
        ("policy_snapshot", {"event_id": "e", "snapshot": {"bar_label": label, "regime": None}}),
        ("policy_proposal", {"proposal": plan.payload()}),
        ("policy_reflection", blocked),
        ("policy_evaluation", {"outcome": "stood_down"}),
    ]
    facts = begun()
    for seq, (kind, payload) in enumerate(shown):
        facts.add(row(seq + 1, kind, known_at, known_at, payload, symbol))
    return facts


def read_shown(facts: LoopFacts, clocks: tuple[int, ...]) -> list[tuple[int, UntradedSignal]]:
    """What reports at the close of some rows tell, with their row."""
    series, found, made = bars(), [], list[PastRun]()
    columns = RuleColumns(series)
    for at in clocks:
        clock = int(series.close_times[at])
        found += [(at, signal) for signal in read_requests(facts, clock, columns).untraded_signals]
        made.append(report(clock))
        facts.runs.add_outside(made)
    return found


def test_deferred_need_of_a_late_answer_is_told_by_the_first_report_that_could_know_it() -> None:
    facts = LoopFacts(Settings())
    facts.add(row(0, "genesis", day(0), day(0), {"timeframe": "1d", "label": "close"}))
    needs = {"deferred": ["raise the risk"], "status": "pass", "findings": []}
    reflected = {"amendment": None, "reflection_hash": "h" * 64, "result": needs}
    facts.add(row(1, "policy_reflection", day(8), day(10), reflected))
    needs_told = {}
    for clock in (day(9), day(10), day(14)):
        needs_told[clock] = [item.text for item in read_requests(facts, clock).deferred_items]
        facts.runs.add_outside([report(number) for number in needs_told])
    assert needs_told == {day(9): [], day(10): ["raise the risk"], day(14): []}


@pytest.mark.parametrize("clocks", [(60, 100, 120, 140, 180), (88, 89, 199), (199,)])
def test_signal_of_a_symbol_that_stopped_trading_is_told_once(clocks: tuple[int, ...]) -> None:
    series = bars()
    ((at, signal),) = read_shown(journalled_block(1, 45, 45, proposal()), clocks)
    assert signal.counterfactual_r is None
    assert signal.known_at == int(series.close_times[45 + 4 * 10 + 8]), "whenever it is asked"
    assert at == min(clock for clock in clocks if clock >= 45 + 4 * 10 + 8)


@pytest.mark.parametrize("clocks", [(50, 60, 100), (60, 100)])
def test_signal_whose_outcome_came_before_its_answer_is_told_after_the_answer(
    clocks: tuple[int, ...],
) -> None:
    series = bars()
    found = read_shown(journalled_block(0, 45, 55, proposal(target=0.5)), clocks)
    assert [(at, signal.reason, signal.known_at) for at, signal in found] == [
        (60, "blocked", int(series.close_times[55]))
    ]


def test_signal_whose_outcome_came_before_its_thesis_expired_is_told_after_that() -> None:
    series, facts = bars(), begun()
    plan = proposal(target=0.5)
    hashes: dict[str, Any] = dict.fromkeys(HASHED, "0" * 64)
    policy = FrozenPolicy(
        symbol="A", proposal=plan, playbook_id="x", playbook_version=1, regime_key="sideways/mid",
        fingerprint=(), risk_fraction=0.01, frozen_at=day(40), prompt_hash=None, model="rules",
        **hashes,
    )  # fmt: skip
    frozen = {"policy_id": "p", "policy": policy.payload()}
    facts.add(row(1, "policy_frozen", day(40), day(40), frozen, "A"))
    for seq, (kind, at) in enumerate((("thesis_armed", 45), ("thesis_expired", 55)), start=2):
        known, event = int(series.close_times[at]), {"bar_label": int(series.times[at]), "policy_id": "p"}
        facts.add(row(seq, kind, known, known, event, "A"))
    ((_, signal),) = read_shown(facts, (60,))
    assert signal.counterfactual_r is not None
    assert signal.known_at == int(series.close_times[55])


def test_signal_that_was_told_is_not_told_again_by_a_clock_before_it() -> None:
    facts, series = journalled_block(0, 45, 55, proposal(target=0.5)), bars()
    columns = RuleColumns(series)
    assert read_requests(facts, int(series.close_times[60]), columns).untraded_signals
    assert read_requests(facts, int(series.close_times[50]), columns).untraded_signals == ()
