"""Names of the hypotheses that a family tests: what playbook files declare, before any outcome."""

from collections.abc import Iterable
from itertools import product

from schemas.playbook import PlaybookDefinition
from schemas.vocabulary import Trend, VolatilityBand
from services.playbooks.measures import eligible_cells

EVERY_CELL = tuple(f"{trend}/{band}" for trend, band in product(Trend, VolatilityBand))


def hypothesis(playbook_id: str, regime: str | None = None, timeframe: str | None = None) -> str:
    """`playbook`, `playbook|trend/volatility` or `playbook|trend/volatility|timeframe`."""
    return "|".join(part for part in (playbook_id, regime, timeframe) if part is not None)


def declared_hypotheses(
    definitions: Iterable[PlaybookDefinition], timeframes: Iterable[str], traded: Iterable[str] = ()
) -> tuple[str, ...]:
    """Every cluster that may be tested, from the playbook files alone.

    Of `traded` ids those without a file are of plans with their own rules: each is a member in every regime.
    The timeframe level is a hypothesis of its own only where there is more than one timeframe; with one it
    repeats the level above. Banned cells stay members, so a ban does not make the rest cheaper.
    """
    frames = sorted(set(timeframes))
    cells = dict.fromkeys(traded, EVERY_CELL)
    for definition in definitions:
        cells[definition.id] = eligible_cells(definition, with_banned=True) if definition.enabled else ()
    names = []
    for name, own in cells.items():
        if not own:
            continue
        names.append(hypothesis(name))
        for cell in own:
            names.append(hypothesis(name, cell))
            if len(frames) > 1:
                names += [hypothesis(name, cell, frame) for frame in frames]
    return tuple(sorted(names))
