"""The columns and features that the rules of playbooks read on bars of a timeframe."""

from collections.abc import Sequence

from schemas.playbook import PlaybookDefinition
from services.playbooks.rendering import render_rules, rule_texts
from trading_core.rules.columns import RuleColumns
from trading_core.rules.grammar import parse


def load_columns(columns: RuleColumns, definitions: Sequence[PlaybookDefinition]) -> tuple[str, ...]:
    """Make every column that a rule of a playbook for these bars needs; the names of the features read.

    Any other rule is computed where it is needed.
    """
    bars = columns.bars
    names = columns.features.load(feature_names(definitions, bars.timeframe))
    columns.load(playbook_rules(definitions, bars.timeframe))
    return names


def feature_names(definitions: Sequence[PlaybookDefinition], timeframe: str) -> tuple[str, ...]:
    """Every feature that some rule of some playbook for this timeframe reads, sorted."""
    names = {name for text in playbook_rules(definitions, timeframe) for name in parse(text).features}
    return tuple(sorted(names - {"open", "high", "low", "close", "volume"}))


def playbook_rules(definitions: Sequence[PlaybookDefinition], timeframe: str) -> tuple[str, ...]:
    """Every rule of every playbook for this timeframe, each once, in the order of the files."""
    texts: dict[str, None] = {}
    for definition in definitions:
        if definition.timeframes and timeframe not in definition.timeframes:
            continue
        for direction in definition.rules:
            texts.update(dict.fromkeys(rule_texts(render_rules(definition, direction)).values()))
    return tuple(texts)
