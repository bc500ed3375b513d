"""Parameters into rule texts: `{name}` becomes the shortest text of its value.

Pure text work; whether a rendered rule parses is the loader's question.
"""

import re
from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any, Literal

from schemas.errors import ConfigError, nearest
from schemas.playbook import DirectionRules, PlaybookDefinition
from schemas.proposal import PolicyProposal
from schemas.vocabulary import Direction

PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
KIND_OF_ROLE: dict[str, Literal["boolean", "number"]] = {
    "setup": "boolean",
    "activation": "boolean",
    "entry": "number",
    "refinement": "number",
    "stop": "number",
    "target": "number",
    "trail": "number",
    "invalidation": "boolean",
    "exit": "boolean",
}
IN_POSITION = ("exit", "trail")  # roles read while a position is open, which may use what it has


def number_text(value: float) -> str:
    """Shortest text that reads back as `value`: no exponent, no trailing `.0`, negatives in parentheses."""
    text = format(Decimal(repr(float(value))), "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return f"({text})" if text.startswith("-") and text != "-0" else text.removeprefix("-")


def _value_text(value: float | str) -> str:
    return value if isinstance(value, str) else number_text(value)


def placeholders(text: str) -> tuple[str, ...]:
    """Names in braces, in order of appearance, repeats included."""
    return tuple(PLACEHOLDER.findall(text))


def render_text(text: str, values: Mapping[str, float | str]) -> str:
    """`text` with every `{name}` replaced by its value.

    Raises:
        ConfigError: a placeholder is not a parameter, or a brace stands alone.
    """

    def value(match: re.Match[str]) -> str:
        if (name := match[1]) not in values:
            known = ", ".join(sorted(values)) or "none"
            raise ConfigError(
                f"{{{name}}} is not a declared parameter (declared: {known}).{nearest(name, values)}"
            )
        return _value_text(values[name])

    rendered = PLACEHOLDER.sub(value, text)
    if "{" in rendered or "}" in rendered:
        raise ConfigError(f"a brace stands alone in {text!r}: write parameters as {{name}}")
    return rendered


def rule_texts(rules: DirectionRules) -> dict[str, str]:
    """Texts by role, in reading order; roles without a text are left out."""
    return {role: text for role in KIND_OF_ROLE if (text := getattr(rules, role)) is not None}


def render_rules(
    definition: PlaybookDefinition, direction: Direction, overrides: Mapping[str, float] | None = None
) -> DirectionRules:
    """Rules of one direction with the definition's parameter values filled in.

    Args:
        definition: any version of a playbook.
        direction: one of `definition.rules`.
        overrides: other values for some parameters, for the evaluation of a grid.

    Raises:
        ConfigError: the playbook has no rules for the direction, or a placeholder is not a parameter.
    """
    if overrides is None:
        return _own_rules(definition, direction)
    if direction not in definition.rules:
        raise ConfigError(
            f"playbook {definition.id!r} has no {direction} rules, only {', '.join(sorted(definition.rules))}"
        )
    values = {name: parameter.value for name, parameter in definition.parameters.items()} | dict(overrides)
    return _render_rules(tuple(rule_texts(definition.rules[direction]).items()), tuple(values.items()))


def lookback_of(playbook: PlaybookDefinition, direction: Direction) -> int:
    """Own bars before the first on which every rule of a direction can be known."""
    from trading_core.rules.grammar import parse

    return max(parse(text).lookback for text in rule_texts(render_rules(playbook, direction)).values())


def list_changes(proposal: PolicyProposal, playbook: PlaybookDefinition) -> frozenset[str]:
    """Rules and terms of a plan that are not its playbook's own, by name; none of an unchanged base.

    Raises:
        ConfigError: the playbook has no rules for the plan's direction.
    """
    own, request = _own_plan(playbook, proposal.direction), proposal.__dict__
    return frozenset(name for name, value in own.items() if request[name] != value)


@lru_cache(maxsize=1024)
def _own_plan(playbook: PlaybookDefinition, direction: Direction) -> dict[str, Any]:
    return dict(render_rules(playbook, direction)) | playbook.terms()


@lru_cache(maxsize=1024)
def _own_rules(definition: PlaybookDefinition, direction: Direction) -> DirectionRules:
    return render_rules(definition, direction, {})


@lru_cache(maxsize=1024)
def _render_rules(
    texts: tuple[tuple[str, str], ...], values: tuple[tuple[str, float], ...]
) -> DirectionRules:
    return DirectionRules(**{role: render_text(text, dict(values)) for role, text in texts})
