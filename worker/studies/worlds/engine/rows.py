"""The rows of whole sessions that are promised, and one world of one's own."""

from collections.abc import Iterator, Mapping
from typing import Any

from worker.studies.worlds.engine.world import EngineWorld, engine_world
from worker.studies.worlds.runs import ENGINE
from worker.studies.worlds.table import Row, Target

PLANTED, NO_HARM = "planted fault", "no harm"
GROUPS = (PLANTED, NO_HARM)
THIRD = 1.0 / 3.0

# As many blocks and symbols as let it be found: a block of longer bars holds fewer trades.
FAULTS = (
    EngineWorld("planted", "15m", blocks=160, symbols=3),
    EngineWorld("planted", "1h", symbols=3),
    EngineWorld("planted", "4h", blocks=160),
    EngineWorld("planted", "1d", blocks=160),
)
FOUND = (
    Target("promoted", 0.8, at_least=True),
    Target("log return", 0.0, at_least=True),
    Target("share", THIRD, at_least=True),
)
HARMLESS = (Target("harm", 0.05),)


def engine_rows() -> tuple[Row, ...]:
    """Every row; that on 4h bars and its null world are the quick ones."""
    faults = (Row(PLANTED, ENGINE, fault, FOUND, quick=fault.timeframe == "4h", part=1) for fault in FAULTS)
    others = (
        Row(NO_HARM, ENGINE, EngineWorld(kind), HARMLESS, quick=kind == "null", part=1)
        for kind in ("null", "turned")
    )
    return (*faults, *others)


def own_engine_rows(kind: str, given: Mapping[str, Any]) -> Iterator[Row]:
    """One world with given parameters.

    Raises:
        ConfigError: an unknown kind, or a parameter out of its range.
    """
    world = engine_world(kind, given)
    group, targets = (PLANTED, ()) if kind == "planted" else (NO_HARM, HARMLESS)
    yield Row(group, ENGINE, world, targets, part=1)
