"""What an approved step makes of a playbook: the definition that comes into force, by value. Pure.

An approved action acts as it says: a value or a risk is in force at once, on a person's word or on the
evidence of its candidate. A trial in shadow needs no plan, except an experiment that a person asks for.
"""

from schemas.judge import JudgeAction
from schemas.playbook import Eligibility, PlaybookDefinition
from services.playbooks.measures import revised, with_parameter


def changed(
    definition: PlaybookDefinition, action: JudgeAction, number: int, known_at: int
) -> PlaybookDefinition:
    """The definition in force after an action, with its version number and the time it is known at, ns.

    A replan or an experiment changes none: the definition comes back as it is.
    """
    if action.kind in ("replan", "open_experiment"):
        return definition
    if action.kind == "set_risk_fraction":
        after = revised(definition, risk_fraction=action.value)
    elif action.kind == "set_eligibility":
        eligibility = {
            side: rules if action.direction not in (None, side) else _with_cell(rules, action)
            for side, rules in definition.eligibility.items()
        }
        after = revised(definition, eligibility=eligibility)
    else:
        after = with_parameter(definition, str(action.parameter), float(action.value or 0.0))
    return revised(after, version=number, known_at=known_at)


def _with_cell(rules: Eligibility, action: JudgeAction) -> Eligibility:
    """Only a cell that these rules declare is taken out of them, or let in again."""
    trend, _, volatility = str(action.regime).partition("/")
    if trend not in rules.trend or volatility not in rules.volatility:
        return rules
    banned = (
        set(rules.banned) - {str(action.regime)} if action.eligible else {*rules.banned, str(action.regime)}
    )
    return revised(rules, banned=tuple(sorted(banned)))
