"""Each fact is in exactly one report: the first whose clock is at or past the time when it was known."""

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from schemas.config import ExecutionSettings, Settings
from schemas.proposal import PolicyProposal
from schemas.reflection import TickValidationEvent, UntradedSignal
from schemas.vocabulary import TickEventKind
from services.journal.chain import JournalRow
from services.slow_loop.journal_facts import JournalFacts, PastRun
from services.slow_loop.signal_facts import SignalFacts
from services.slow_loop.untraded_signals import UntradedSignals
from trading_core.bars import BarSeries
from trading_core.rules import RuleColumns

DAY = 86_400 * 10**9
ROWS, STOPS_TRADING, TRADES_AGAIN = 200, 50, 120


@dataclass
class Read:
    """A report, as far as it says what was told; it found nothing."""

    grid_trials: tuple[Any, ...] = ()


def day(number: int) -> int:
    return (20_000 + number) * DAY


def row(
    seq: int, kind: str, at: int, known_at: int, payload: dict[str, Any], symbol: str = "B"
) -> JournalRow:
    return JournalRow(seq, at, known_at, kind, symbol, json.dumps(payload), None, "", "")


def report(clock: int) -> PastRun:
    return PastRun(clock, clock, clock, Read())  # type: ignore[arg-type]


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


def journalled_block(s: int, at_row: int, arrived_row: int, plan: PolicyProposal) -> SignalFacts:
    """A proposal blocked on one bar, whose answer arrived at the close of another."""
    series = bars()
    label, symbol = int(series.times[at_row]), series.symbols[s]
    known_at = int(series.close_times[arrived_row])
    blocked = {"amendment": None, "result": {"status": "block", "findings": []}}
    told: list[tuple[str, dict[str, Any]]] = [
        ("policy_snapshot", {"snapshot": {"bar_label": label}}),
        ("policy_proposal", {"proposal": plan.payload()}),
        ("policy_reflection", blocked),
        ("policy_evaluation", {"outcome": "stood_down"}),
    ]
    facts = SignalFacts()
    for seq, (kind, payload) in enumerate(told):
        facts.add(row(seq, kind, known_at, known_at, payload, symbol), payload)
    return facts


def both_tell(
    live: UntradedSignals, facts: SignalFacts, clocks: tuple[int, ...]
) -> list[tuple[int, UntradedSignal]]:
    """What reports at the close of some rows tell, with their row; the run and its journal say the same."""
    series = bars()
    columns, told, since = RuleColumns(series), [], -1
    for at in clocks:
        clock = int(series.close_times[at])
        by_run = tuple(one for one in live.known(at + 1) if one.known_at > since)
        by_journal = facts.untraded(series, columns, ExecutionSettings(), since, clock)
        assert by_run == by_journal
        told += [(at, one) for one in by_run]
        since = clock
    return told


def test_deferred_need_of_a_late_answer_is_told_by_the_first_report_that_could_know_it() -> None:
    facts = JournalFacts(Settings())
    facts.add(row(0, "genesis", day(0), day(0), {"timeframe": "1d", "label": "close"}))
    needs = {"deferred": ["raise the risk"], "status": "pass", "findings": []}
    reflected = {"amendment": None, "reflection_hash": "h" * 64, "result": needs}
    facts.add(row(1, "policy_reflection", day(8), day(10), reflected))
    told = {}
    for clock in (day(9), day(10), day(14)):
        told[clock] = [one.text for one in facts.request_facts(clock, clock, "slot").deferred]
        facts.add_runs([report(one) for one in told])
    assert told == {day(9): [], day(10): ["raise the risk"], day(14): []}


@pytest.mark.parametrize("clocks", [(60, 100, 120, 140, 180), (88, 89, 199), (199,)])
def test_signal_of_a_symbol_that_stopped_trading_is_told_once(clocks: tuple[int, ...]) -> None:
    series = bars()
    live = UntradedSignals(series, RuleColumns(series), ExecutionSettings())
    live.blocked(1, 45, proposal(), int(series.close_times[45]))
    told = both_tell(live, journalled_block(1, 45, 45, proposal()), clocks)
    ((at, signal),) = told
    assert signal.counterfactual_r is None
    assert signal.known_at == int(series.close_times[45 + 4 * 10 + 8]), "whenever it is asked"
    assert at == min(clock for clock in clocks if clock >= 45 + 4 * 10 + 8)


def test_signal_whose_outcome_came_before_its_answer_is_told_after_the_answer() -> None:
    series = bars()
    live = UntradedSignals(series, RuleColumns(series), ExecutionSettings())
    facts = journalled_block(0, 45, 55, proposal(target=0.5))
    assert both_tell(live, SignalFacts(), (50,)) == []
    live.blocked(0, 45, proposal(target=0.5), int(series.close_times[55]))
    told = both_tell(live, facts, (60, 100))
    assert [(at, one.reason, one.known_at) for at, one in told] == [
        (60, "blocked", int(series.close_times[55]))
    ]
    reports = [int(series.close_times[at]) for at in (50, 60)]
    columns = RuleColumns(series)
    assert len(facts.untraded(series, columns, ExecutionSettings(), reports[0], reports[1])) == 1


def test_signal_whose_outcome_came_before_its_thesis_expired_is_told_after_that() -> None:
    @dataclass
    class Frozen:
        proposal: PolicyProposal

    series = bars()
    live = UntradedSignals(series, RuleColumns(series), ExecutionSettings())
    policies = {"p": Frozen(proposal(target=0.5))}
    for kind, at in ((TickEventKind.THESIS_ARMED, 45), (TickEventKind.THESIS_EXPIRED, 55)):
        known = int(series.close_times[at])
        event = TickValidationEvent(
            kind=kind,
            symbol="A",
            bar_label=int(series.times[at]),
            ts_event=known,
            known_at=known,
            detail={"policy_id": "p"},
        )
        live.observe(event, at, policies)
    (signal,) = live.known(60)
    assert signal.counterfactual_r is not None
    assert signal.known_at == int(series.close_times[55])
