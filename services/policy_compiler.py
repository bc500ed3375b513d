"""Translate a proposal into the engine's terms: every rule becomes a column of the rule bank, by index.

A rule that does not parse, or is of the wrong kind, refuses the proposal before anything is installed.
"""

from schemas.errors import InvalidProposal, RuleError
from schemas.policy import FrozenPolicy
from schemas.proposal import PolicyProposal
from trading_core.rule_bank import EngineColumns
from trading_core.rules import RuleColumns
from trading_core.tick_events import PolicyTag
from trading_core.trigger_engine import PolicyOrders


def compile_policy(policy: FrozenPolicy, s: int, columns: RuleColumns, bank: EngineColumns) -> PolicyOrders:
    """Orders of a frozen policy for symbol column `s`.

    Raises:
        InvalidProposal: a rule is not a rule, or of the wrong kind.
    """
    return compile_proposal(
        policy.proposal,
        s,
        columns,
        bank,
        PolicyTag(policy.policy_id, policy.playbook_id),
        policy.risk_fraction,
    )


def compile_proposal(
    proposal: PolicyProposal,
    s: int,
    columns: RuleColumns,
    bank: EngineColumns,
    tag: PolicyTag,
    risk_fraction: float,
) -> PolicyOrders:
    """Orders of a proposal for symbol column `s`.

    Raises:
        InvalidProposal: a rule is not a rule, or of the wrong kind.
    """

    def truth(text: str | None) -> int:
        return -1 if text is None else bank.truth((text, s), columns.boolean(text, s))

    def number(text: str | None) -> int:
        return -1 if text is None else bank.number((text, s), columns.number(text, s))

    try:
        return PolicyOrders(
            tag=tag,
            direction=1 if proposal.direction == "long" else -1,
            setup=truth(proposal.setup),
            activation=truth(proposal.activation),
            invalidation=truth(proposal.invalidation),
            stop=number(proposal.stop),
            target=number(proposal.target),
            refinement=number(proposal.refinement),
            window=proposal.activation_window_bars,
            horizon=proposal.horizon_bars,
            risk_fraction=risk_fraction,
        )
    except RuleError as error:
        raise InvalidProposal(f"the proposal cannot be compiled: {error}") from error
