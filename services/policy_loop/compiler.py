"""Translate a plan into the engine's terms, see `trading_core.rules.orders`.

A rule that does not parse, or is of the wrong kind, refuses the proposal before anything is installed.
"""

from schemas.errors import InvalidProposal, RuleError
from schemas.policy import FrozenPolicy
from schemas.settings import ExecutionSettings
from trading_core.policy_orders import PolicyOrders
from trading_core.rule_bank import EngineColumns
from trading_core.rules.columns import RuleColumns
from trading_core.rules.orders import SymbolColumns, compile_orders, rules_of
from trading_core.tick_events import PolicyTag

VOLATILITY_RULE = "atr_14"  # what sizing by volatility divides by, see `ExecutionSettings.sizing`


def volatility_rule(execution: ExecutionSettings) -> str | None:
    """The price rule that sizing reads; None when it reads none."""
    return VOLATILITY_RULE if execution.sizing == "volatility" else None


def compile_policy(
    policy: FrozenPolicy, s: int, columns: RuleColumns, bank: EngineColumns, volatility: str | None = None
) -> PolicyOrders:
    """Orders of a frozen policy for symbol column `s`; `volatility` is what `volatility_rule` says.

    Raises:
        InvalidProposal: a rule is not a rule, or of the wrong kind.
    """
    proposal = policy.proposal
    try:
        return compile_orders(
            rules_of(proposal),
            proposal,
            SymbolColumns(columns, bank, s),
            tag=PolicyTag(policy.policy_id, policy.playbook_id),
            direction=proposal.direction,
            window=proposal.activation_window_bars,
            horizon=proposal.horizon_bars,
            risk_fraction=policy.risk_fraction,
            volatility=volatility,
        )
    except RuleError as error:
        raise InvalidProposal(f"the proposal cannot be compiled: {error}") from error
