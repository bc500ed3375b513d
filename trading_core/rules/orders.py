"""Translate rules and terms into the engine's: every rule becomes a column of a rule bank, by index.

One way for plans, shadow ledgers and rule research, so that what trades on paper beside the account is what
would trade on it.
"""

from dataclasses import dataclass, field
from math import nan

from schemas.order_terms import OrderTerms
from schemas.playbook import DirectionRules
from schemas.proposal import PolicyProposal
from schemas.vocabulary import Direction
from trading_core.kernel.records import NO_PROGRAM
from trading_core.policy_orders import PolicyOrders
from trading_core.rule_bank import EngineColumns
from trading_core.rules.columns import RuleColumns, SharedColumns, rule_of_kind
from trading_core.rules.grammar import parse
from trading_core.rules.programs import Program, compile_program
from trading_core.rules.tree import Kind
from trading_core.tick_events import PolicyTag


@dataclass(frozen=True)
class SymbolColumns:
    """Rules of one symbol column `s` as columns of an engine, each by its index, -1 for no rule."""

    columns: RuleColumns
    bank: EngineColumns
    s: int
    rows: slice = field(default_factory=lambda: slice(None))  # that a bank of the engine's own holds

    def truth(self, text: str | None) -> int:
        """Index of a condition."""
        if text is None:
            return -1
        if isinstance(self.bank, SharedColumns):  # read where it stands: its older rows may be gone
            return self.columns.place(rule_of_kind(text, "boolean").text, self.s).index
        return self.bank.truth((text, self.s), self.columns.boolean(text, self.s)[self.rows])

    def number(self, text: str | None) -> int:
        """Index of a price."""
        if text is None:
            return -1
        if isinstance(self.bank, SharedColumns):
            return self.columns.place(rule_of_kind(text, "number").text, self.s).index
        return self.bank.number((text, self.s), self.columns.number(text, self.s)[self.rows])

    def trail(self, text: str | None) -> int:
        """Index of a trailing stop that reads bars alone."""
        return -1 if text is None or parse(text).position else self.number(text)

    def program(self, text: str | None, kind: Kind) -> Program:
        """Steps of a rule that may read the position."""
        if text is None:
            return NO_PROGRAM
        return compile_program(rule_of_kind(text, kind), self.truth, self.number)


def rules_of(proposal: PolicyProposal) -> DirectionRules:
    """The rules of a proposal alone."""
    return DirectionRules.trust(**{role: getattr(proposal, role) for role in DirectionRules.model_fields})


def compile_orders(
    rules: DirectionRules,
    terms: OrderTerms,
    place: SymbolColumns,
    *,
    tag: PolicyTag,
    direction: Direction,
    window: int,
    horizon: int,
    risk_fraction: float,
    volatility: str | None = None,
    setup: int | None = None,
    never_ends: bool = False,
) -> PolicyOrders:
    """Orders of rules and terms.

    Args:
        rules: rendered rules of one direction.
        terms: how the plan enters and manages its position.
        place: where the rules become columns.
        tag: the owner.
        direction: of the rules.
        window: own bars that the thesis stays armed, and that an entry rests; 0: the setup orders at its
            close, and an entry rests for one bar.
        horizon: own bars of the time stop.
        risk_fraction: of equity at the stop.
        volatility: price rule that sizing divides by.
        setup: index of a condition to use instead of `rules.setup`.
        never_ends: never spent and never expires.

    Raises:
        RuleError: a rule is not a rule, or of the wrong kind.
    """
    return PolicyOrders(
        tag=tag,
        direction=1 if direction == "long" else -1,
        setup=place.truth(rules.setup) if setup is None else setup,
        activation=place.truth(rules.activation),
        invalidation=place.truth(rules.invalidation),
        stop=place.number(rules.stop),
        target=place.number(rules.target),
        refinement=place.number(rules.refinement),
        window=window,
        horizon=horizon,
        risk_fraction=risk_fraction,
        immediate=window == 0,
        never_ends=never_ends,
        repeats=terms.repeats,
        entry_kind=terms.entry_kind,
        entry=place.number(rules.entry),
        refines_entry=terms.refinement_kind == "limit",
        trail=place.trail(rules.trail),
        break_even_r=_or_never(terms.break_even_r),
        scale_outs=terms.scale_outs,
        add_at_r=_or_never(terms.add_at_r),
        add_share=_or_never(terms.add_share),
        target_moves=terms.target_moves,
        volatility=place.number(volatility),
        exit_rule=place.program(rules.exit, "boolean"),
        trail_rule=NO_PROGRAM if place.trail(rules.trail) >= 0 else place.program(rules.trail, "number"),
    )


def _or_never(value: float | None) -> float:
    return nan if value is None else value
