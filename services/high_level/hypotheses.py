"""Names of the hypotheses that a family tests: what playbook files declare, before any outcome."""

from collections.abc import Iterable

from schemas.playbook import PlaybookDefinition
from services.playbooks.measures import eligible_cells


def hypothesis(playbook_id: str, regime: str | None = None, timeframe: str | None = None) -> str:
    """`playbook`, `playbook|trend/volatility` or `playbook|trend/volatility|timeframe`."""
    return "|".join(part for part in (playbook_id, regime, timeframe) if part is not None)


def declared_hypotheses(
    definitions: Iterable[PlaybookDefinition], timeframes: Iterable[str]
) -> tuple[str, ...]:
    """Every cluster that may be tested, from the playbook files alone.

    The timeframe level is a hypothesis of its own only where there is more than one timeframe; with one it
    repeats the level above. Banned cells stay members, so a ban does not make the rest cheaper.
    """
    frames = sorted(set(timeframes))
    names = []
    for definition in definitions:
        if not definition.enabled:
            continue
        names.append(hypothesis(definition.id))
        for cell in eligible_cells(definition, with_banned=True):
            names.append(hypothesis(definition.id, cell))
            if len(frames) > 1:
                names += [hypothesis(definition.id, cell, frame) for frame in frames]
    return tuple(sorted(names))
