"""What a plan would have done.

One entry that never happened, carried to its exit by the engine on the bars that followed.
"""

from dataclasses import dataclass, replace

import numpy as np

from schemas.proposal import PolicyProposal
from schemas.settings.execution import ExecutionSettings
from trading_core.bars import BarSeries
from trading_core.kernel.fresh import parameter_record
from trading_core.rule_bank import RuleBank
from trading_core.rules.columns import RuleColumns
from trading_core.rules.orders import SymbolColumns, compile_orders, rules_of
from trading_core.tick_events import PolicyTag, TickEventDecoder
from trading_core.tick_guard import TickGuard
from trading_core.trigger_engine import TriggerEngine

CASH = 1e9


@dataclass(frozen=True)
class PaperPlans:
    """Plans by themselves on the bars of a run; `columns` are those of its rules."""

    columns: RuleColumns

    @property
    def bars(self) -> BarSeries:
        """The series."""
        return self.columns.bars

    def outcome(
        self,
        plan: PolicyProposal,
        s: int,
        row: int,
        until: int,
        execution: ExecutionSettings,
        rests: int | None = None,
    ) -> tuple[float, int] | None:
        """R after costs of an entry signalled at the close of `row`, and the row of its exit.

        Args:
            plan: what it exits by.
            s: symbol column.
            row: signal row.
            until: first row that may not be read.
            execution: fill rules and costs.
            rests: own bars that the plan's limit or stop entry waits for its price; None: it is entered at
                the market, and its rules of entry are not read.

        Returns:
            (r, exit_row), or None while unresolved, never filled, or when the order would have been refused.

        Raises:
            RuleError: a rule is not a rule, or of the wrong kind.
        """
        # No row outside is copied or made: a long run asks this of many plans.
        window = slice(max(row - 1, 0), min(until, self.bars.shape[0]))
        bars = self.bars.take(np.arange(window.start, window.stop), np.array([s]))
        bank, signal = RuleBank(bars.shape[0]), np.zeros(bars.shape[0], dtype=np.int8)
        first = row - window.start
        signal[first] = bars.present[first, 0]
        idle = ("activation", "refinement", *(("entry",) if rests is None else ()))
        rules = rules_of(plan).model_copy(update=dict.fromkeys(idle))
        orders = compile_orders(
            rules, plan, SymbolColumns(self.columns, bank, s, window), tag=PolicyTag("", plan.playbook_id),
            direction=plan.direction, window=0, horizon=plan.horizon_bars, risk_fraction=0.0,
            setup=bank.truth(("signal", s), signal),
        )  # fmt: skip
        parameters = parameter_record(execution, None, heartbeat=0, emit_events=False, fixed_quantity=1.0)
        flags, decoder = np.zeros(bars.shape, dtype=np.uint8), TickEventDecoder(bars, "", "")
        engine = TriggerEngine(bars, flags, parameters, CASH, TickGuard(), decoder, columns=bank)
        engine.t = first
        placed = replace(orders, entry_kind="market") if rests is None else replace(orders, window=rests)
        engine.install(0, replace(placed, refines_entry=False))
        trades = engine.advance().trades
        return (float(trades[0]["r"]), int(trades[0]["exit_t"]) + window.start) if trades.size else None
