"""Are the plan's rules the playbook's rules? Only parameters may differ, and only along their grids.

Texts are compared in canonical form, so blanks and needless parentheses do not matter. A proposal that wants
other rules wants another playbook, which is the slow loop's business.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import product

from schemas.playbook import PlaybookDefinition
from schemas.proposal import PolicyProposal
from services.playbooks.rendering import KIND_OF_ROLE, placeholders, render_text
from services.policy_checks.plan_levels import rule_text
from trading_core.rules.grammar import parse

Grids = tuple[tuple[str, tuple[float, ...]], ...]
Values = tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Difference:
    """One rule of a plan that the playbook does not have; `wanted` is its text there, None if it has none."""

    role: str
    message: str
    wanted: str | None


def differences(
    proposal: PolicyProposal, playbook: PlaybookDefinition, skip: frozenset[str] = frozenset()
) -> tuple[Difference, ...]:
    """What sets the plan's rules apart from the playbook's; `skip` names broken roles.

    What is wanted keeps the parameter values that the plan's other rules have chosen.
    """
    templates = playbook.rules[proposal.direction]
    chosen: dict[str, tuple[float, str]] = {}
    found: list[tuple[str, str]] = []
    for role in KIND_OF_ROLE:
        text, template = rule_text(proposal, role), getattr(templates, role)
        if role in skip or (text is None and template is None):
            continue
        values = None if text is None or template is None else _values_behind(text, template, playbook)
        if values is None:
            found.append((role, f"{role} is {text!r}, the playbook says {template!r}"))
            continue
        for name, value in values:
            first_value, first_role = chosen.setdefault(name, (value, role))
            if first_value != value:
                message = f"parameter {name!r} is {first_value!r} in {first_role} and {value!r} in {role}"
                found.append((role, message))
    if not found:
        return ()
    values_of_all = {name: parameter.value for name, parameter in playbook.parameters.items()}
    values_of_all |= {name: value for name, (value, _) in chosen.items()}
    return tuple(
        Difference(role, message, wanted and render_text(wanted, values_of_all))
        for role, message in found
        for wanted in (getattr(templates, role),)
    )


def _values_behind(text: str, template: str, playbook: PlaybookDefinition) -> Values | None:
    """Parameter values with which the template says `text`; the playbook's own values are tried first."""
    names = dict.fromkeys(placeholders(template))
    own = tuple((name, playbook.parameters[name].value) for name in names)
    if _says(template, own, parse(text).text):
        return own
    return _search(
        parse(text).text, template, tuple((name, playbook.parameters[name].grid) for name in names)
    )


@lru_cache(maxsize=1024)
def _search(canonical: str, template: str, grids: Grids) -> Values | None:
    for combination in product(*(grid for _, grid in grids)):
        values = tuple((name, value) for (name, _), value in zip(grids, combination, strict=True))
        if _says(template, values, canonical):
            return values
    return None


@lru_cache(maxsize=4096)
def _says(template: str, values: Values, canonical: str) -> bool:
    return parse(render_text(template, dict(values))).text == canonical
