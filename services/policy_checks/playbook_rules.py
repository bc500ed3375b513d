"""Are the plan's rules the playbook's rules? Only parameters may differ, and only along their grids.

Texts are compared in canonical form, so blanks and needless parentheses do not matter. Called by the
coherence check; a proposal that wants other rules wants another playbook, which is the slow loop's
business.
"""

from functools import lru_cache
from itertools import product

from schemas.playbook import PlaybookDefinition
from schemas.proposal import PolicyProposal
from services.playbooks.rendering import KIND_OF_ROLE, placeholders, render_text
from services.policy_checks.plan_levels import rule_text
from trading_core.rules import parse

Grids = tuple[tuple[str, tuple[float, ...]], ...]
Values = tuple[tuple[str, float], ...]


def differences(
    proposal: PolicyProposal, playbook: PlaybookDefinition, skip: frozenset[str] = frozenset()
) -> tuple[str, ...]:
    """What sets the plan's rules apart from the playbook's, one line each; `skip` names broken roles."""
    templates = playbook.rules[proposal.direction]
    chosen: dict[str, tuple[float, str]] = {}
    lines = []
    for role in KIND_OF_ROLE:
        text, template = rule_text(proposal, role), getattr(templates, role)
        if role in skip or (text is None and template is None):
            continue
        values = None if text is None or template is None else _values_behind(text, template, playbook)
        if values is None:
            lines.append(f"{role} is {text!r}, the playbook says {template!r}")
            continue
        for name, value in values:
            first_value, first_role = chosen.setdefault(name, (value, role))
            if first_value != value:
                lines.append(f"parameter {name!r} is {first_value!r} in {first_role} and {value!r} in {role}")
    return tuple(lines)


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
