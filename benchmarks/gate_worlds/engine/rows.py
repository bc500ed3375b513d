"""The rows of whole sessions that are promised."""

from benchmarks.gate_worlds.engine.world import EngineWorld
from benchmarks.gate_worlds.runs import ENGINE
from benchmarks.gate_worlds.table import Row, Target

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
    """Every row: the planted faults, and the worlds in which nothing may be lost."""
    faults = (Row(PLANTED, ENGINE, fault, FOUND, part=1) for fault in FAULTS)
    others = (Row(NO_HARM, ENGINE, EngineWorld(kind), HARMLESS, part=1) for kind in ("null", "turned"))
    return (*faults, *others)
