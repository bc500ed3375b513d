"""Shadow ledger of refused plans: what those would have made that the fast reflection blocked or sent back.

The plans come from the journal of the arm that refused them and are traded on paper by the same kernel on
the bars that followed, one unit each and without an envelope. A plan is in force until the symbol's next
evaluation, as it would have been; a position that it opened runs to its own exit. A trade that two refused
plans would both have made is counted once. Kept apart: nothing here is a trade of any account.
"""

import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from schemas.proposal import PolicyProposal
from schemas.settings import ExecutionSettings, Settings
from services.journal.chain import JournalRow
from services.policy_loop.compiler import volatility_rule
from services.slow_loop.shadow_ledger import UNLIMITED_CASH
from trading_core.bars import BarSeries
from trading_core.kernel.fresh import parameter_record
from trading_core.policy_orders import PolicyOrders
from trading_core.rules.columns import RuleColumns, SharedColumns
from trading_core.rules.orders import SymbolColumns, compile_orders, rules_of
from trading_core.tick_events import PolicyTag, TickEventDecoder
from trading_core.tick_guard import TickGuard
from trading_core.trigger_engine import TriggerEngine
from worker.runs.backtest import sifted_bars
from worker.studies.ablation.arms import Arm
from worker.studies.ablation.runner import Ablation

if TYPE_CHECKING:
    from services.store import Store

Reason = Literal["blocked", "revised", "banned"]
REASONS: dict[str, Reason] = {"block": "blocked", "revise": "revised"}
KINDS = ("policy_snapshot", "policy_proposal", "policy_reflection")
Outcome = tuple[int, int, float]  # exit label, entry label, R


@dataclass(frozen=True)
class RefusedPlan:
    """One refused proposal: signalled at the close of row `row`, in force to the close of row `until`."""

    reason: Reason
    s: int
    row: int
    until: int
    proposal: PolicyProposal


@dataclass(frozen=True)
class PaperTrades:
    """What one group of refused plans would have made; `unresolved` were still open at the last bar."""

    reason: Reason
    plans: int
    unresolved: int
    outcomes: tuple[Outcome, ...]


async def refused_plans(rows: AsyncIterator[JournalRow], bars: BarSeries) -> list[RefusedPlan]:
    """Refused plans of a journal, in its order, from its rows of `KINDS`; none made in a position.

    Bases that were not offered for what the reflection would have found are among them.
    """
    held, proposal = False, None
    found: list[tuple[Reason, int, int, PolicyProposal]] = []
    looked: dict[int, list[int]] = {s: [] for s in range(len(bars.symbols))}
    async for row in rows:
        s = bars.symbols.index(row.symbol or "")
        at = int(np.searchsorted(bars.close_times, row.ts_event))
        payload = json.loads(row.payload)
        if row.kind == "policy_snapshot":
            looked[s].append(at)
            held = payload["snapshot"]["position"] is not None
        elif row.kind == "policy_proposal":
            proposal = payload["proposal"]
            for base in payload["passed_over"]:
                found.append(("revised", s, at, PolicyProposal.model_validate(base["proposal"])))
        elif not held and payload["result"]["status"] in REASONS and proposal is not None:
            plan = PolicyProposal.model_validate(proposal)
            found.append((REASONS[payload["result"]["status"]], s, at, plan))
    last = bars.shape[0] - 1
    ends = {s: np.array([*rows_seen, last]) for s, rows_seen in looked.items()}
    return [
        RefusedPlan(reason, s, at, int(ends[s][np.searchsorted(ends[s][:-1], at, side="right")]), plan)
        for reason, s, at, plan in found
    ]


class PaperTrader:
    """Trades refused plans on paper, each alone."""

    def __init__(self, bars: BarSeries, execution: ExecutionSettings) -> None:
        self._bars = bars
        self._columns = RuleColumns(bars)
        self._volatility = volatility_rule(execution)
        self._parameters = parameter_record(
            execution.for_one_unit, None, heartbeat=0, emit_events=False, fixed_quantity=1.0
        )
        self._flags = np.zeros(bars.shape, dtype=np.uint8)

    def trade(self, plans: list[RefusedPlan]) -> Iterator[PaperTrades]:
        """A group for each reason that occurs; a trade counts for the first plan that would have made it."""
        seen: set[tuple[int, str, str, int]] = set()
        for reason in ("blocked", "revised"):
            members = [plan for plan in plans if plan.reason == reason]
            outcomes, unresolved = [], 0
            for plan in members:
                outcome = self._outcome(plan)
                if outcome is None:
                    continue
                entry = outcome[1]
                key = (plan.s, plan.proposal.playbook_id, plan.proposal.direction, entry)
                if key in seen:
                    continue
                seen.add(key)
                if outcome[2] is None:
                    unresolved += 1
                else:
                    outcomes.append((outcome[0], entry, outcome[2]))
            if members:
                yield PaperTrades(reason, len(members), unresolved, tuple(outcomes))

    def _outcome(self, plan: RefusedPlan) -> tuple[int, int, float | None] | None:
        """(exit label, entry label, R), R None while open at the last bar; None when it never entered."""
        engine = TriggerEngine(
            self._bars, self._flags, self._parameters, UNLIMITED_CASH, TickGuard(),
            TickEventDecoder(self._bars, "refused", "shadow"), columns=SharedColumns(self._columns),
        )  # fmt: skip
        engine.t = plan.row + 1
        engine.install(plan.s, self._orders(plan))
        last = self._bars.shape[0]
        while engine.t < last:
            trades = engine.advance(plan.until + 1 if engine.t <= plan.until else last).trades
            if len(trades):
                rows = (int(trades[0][name]) for name in ("exit_t", "entry_t"))
                exit_label, entry = (int(self._bars.times[row]) for row in rows)
                return exit_label, entry, float(trades[0]["r"])
            if engine.t > plan.until and int(engine.state["direction"][plan.s]) == 0:
                return None
        if int(engine.state["direction"][plan.s]) == 0:
            return None
        return 0, int(self._bars.times[int(engine.state["entry_t"][plan.s])]), None

    def _orders(self, plan: RefusedPlan) -> PolicyOrders:
        proposal = plan.proposal
        return compile_orders(
            rules_of(proposal),
            proposal,
            SymbolColumns(self._columns, SharedColumns(self._columns), plan.s),
            tag=PolicyTag("refused", proposal.playbook_id),
            direction=proposal.direction,
            window=proposal.activation_window_bars,
            horizon=proposal.horizon_bars,
            risk_fraction=1.0,
            volatility=self._volatility,
        )


async def banned_trades(rows: AsyncIterator[JournalRow]) -> PaperTrades | None:
    """What cells that the slow loop banned have made on paper, from rows of kind `shadow_episode`."""
    outcomes = []
    async for row in rows:
        payload = json.loads(row.payload)
        if payload["kind"] == "banned_cell":
            episode = payload["episode"]
            outcomes.append((episode["exit_label"], episode["entry_label"], episode["r"]))
    return PaperTrades("banned", len(outcomes), 0, tuple(outcomes)) if outcomes else None


async def shadow_ledger(
    ablation: Ablation, store: "Store", bars: BarSeries, settings: Settings
) -> list[PaperTrades]:
    """What the fast reflection refused when it was alone, and what the slow loop banned when it was on.

    Plans are traded on the bars that the arms traded: bars in doubt are left out as they were there.
    """
    bars = sifted_bars(bars, settings.data).bars

    def journal_of(arm: Arm) -> str:
        return ablation.arms[arm].run_id or ""

    plans = await refused_plans(store.journal.rows(journal_of(Arm.FAST_ONLY), kinds=KINDS), bars)
    found = list(PaperTrader(bars, settings.execution).trade(plans))
    shadow = store.journal.rows(journal_of(Arm.DETERMINISTIC), kinds={"shadow_episode"})
    banned = await banned_trades(shadow)
    return found if banned is None else [*found, banned]
