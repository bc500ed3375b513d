"""The gate on worlds with known truth, as `thinktwice worlds` measures them.

`uv run python -m benchmarks.gate_worlds` prints the tables.
"""

import sys
from typing import Any

from tools.docs_pages import table
from worker.cli.worlds import cells_of, columns, headline
from worker.worlds.rates import CELLS, KINDS, measure_all

RUNS, SEED = 200, 1


def time_worlds() -> dict[str, Any]:
    """The document of all kinds; it holds no times, so the same seed gives the same page."""
    return measure_all(KINDS, CELLS, RUNS, SEED, lambda text: None)


def worlds_tables(document: dict[str, Any]) -> str:
    """The headline and one table a kind."""
    parts = [f"**{headline(document)}**"]
    for kind in document["kinds"]:
        rows = [tuple(cells_of(one)) for one in document["worlds"] if one["kind"] == kind]
        parts.append(f"{kind.capitalize()} worlds:\n\n{table(('world', *columns(kind)), rows)}")
    return "\n\n".join(parts)


if __name__ == "__main__":
    sys.stdout.write(worlds_tables(time_worlds()) + "\n")
