"""What turns for the unproven cost, and how much sooner they find a true difference.

`uv run python -m benchmarks.exploration [RUNS]` prints the table. Five playbooks trade one at a time, ranked
as the strategist ranks: by their expectancy with the prior's weight of 20 trades, and by `Exploration`. Where
the best began badly, greedy hardly comes back to it.
"""

import sys
from dataclasses import dataclass
from itertools import product
from types import SimpleNamespace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from agents.strategies.rule_strategist import Exploration, upper_r
from tools.docs_pages import table

Floats: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.int64]
SEED, RUNS, TRADES, WEIGHT = 20_261_127, 200, 1_500, 20.0
WORLDS = {  # the true means; the first playbook has twenty trades behind it
    "nothing differs": (0.0, 0.0, 0.0, 0.0, 0.0),
    "one +.2R, four 0": (0.2, 0.0, 0.0, 0.0, 0.0),
    "one +.4R, four 0": (0.4, 0.0, 0.0, 0.0, 0.0),
    "one +.2R, four -.2R": (0.2, -0.2, -0.2, -0.2, -0.2),
}
BAD_START, FAIR_START = -0.3, 0.0  # mean of these twenty trades, R


@dataclass(frozen=True)
class Explored:
    """Of a world and a share.

    Attributes:
        regret_r: mean R a trade given up against always trading the best.
        found: share of runs in which the best had half of the last hundred trades.
        after: median number of trades until it had half of a hundred; None where it never did.
    """

    regret_r: float
    found: float
    after: float | None


def explore_world(
    means: tuple[float, ...], share: float, runs: int = RUNS, start: float = BAD_START
) -> Explored:
    """Regret and finding over the runs; the same draws for every share."""
    paths = [_run(np.array(means), (share, start), run) for run in range(runs)]
    regret = float(np.mean([max(means) - np.array(means)[path].mean() for path in paths]))
    recent = [np.convolve((path == 0).astype(np.float64), np.full(100, 0.01), "valid") for path in paths]
    firsts = [int(np.argmax(seen >= 0.5)) if (seen >= 0.5).any() else TRADES for seen in recent]
    after = float(np.median(firsts))
    return Explored(
        regret, float(np.mean([seen[-1] >= 0.5 for seen in recent])), after if after < TRADES else None
    )


def _run(means: Floats, terms: tuple[float, float], run: int) -> Integers:
    """Which playbook made each trade; `terms` are the share and the start."""
    share, start = terms
    noise = np.random.default_rng([SEED, run]).standard_normal((TRADES, means.size))
    n, total = np.zeros(means.size), np.zeros(means.size)
    n[0], total[0] = 20.0, 20.0 * start
    exploration, path = Exploration(share, run), np.zeros(TRADES, dtype=np.int64)
    for k in range(TRADES):
        bar: Any = SimpleNamespace(symbol="A", ts_event=k)
        expected = total / (n + WEIGHT)
        best = float(expected.max())
        turns = [
            exploration.turn(bar, str(place)) if upper_r(float(mean), float(weight)) >= best else 1.0
            for place, (mean, weight) in enumerate(zip(expected, n + WEIGHT, strict=True))
        ]
        chosen = min(range(means.size), key=lambda place: (turns[place], -expected[place], n[place]))
        n[chosen] += 1
        total[chosen] += means[chosen] + noise[k, chosen]
        path[k] = chosen
    return path


def exploration_table(runs: int) -> str:
    """One line a world and share."""
    rows = []
    for (name, means), start in product(WORLDS.items(), (BAD_START, FAIR_START)):
        for share in (0.0, 0.1):
            found = explore_world(means, share, runs, start)
            after = "-" if found.after is None else f"{found.after:.0f}"
            shown = (f"{found.regret_r:.3f}", f"{100 * found.found:.0f}", after)
            rows.append((name, f"{start:+.1f}R", f"{100 * share:.0f} %", *shown))
    head = (
        "world",
        "its first 20",
        "explore",
        "regret, R a trade",
        "best found, % of runs",
        "after trades, median",
    )
    return table(head, rows)


if __name__ == "__main__":
    sys.stdout.write(exploration_table(int(sys.argv[1]) if len(sys.argv) > 1 else RUNS) + "\n")
