"""How often a claim is false, into the file from which gate, report and page print it.

`uv run python -m benchmarks.gate_worlds.rates` draws null worlds in one process (ten minutes) and writes
`services/high_level/measured_rates.json`. The years without a cause are the worst of the list for many
hypotheses: one bet in five symbols, +4/-1.
"""

import argparse
import json
import sys
from collections.abc import Sequence

import numpy as np

from benchmarks.gate_worlds.catalogue import World, world_of
from benchmarks.gate_worlds.measures import draw_run
from benchmarks.gate_worlds.second_opinions import CASES, Case, claims_of
from benchmarks.gate_worlds.table import five_years_of
from schemas.settings import GateSettings
from services.high_level.measured_rates import FILE

PLAYBOOKS = (3, 12, 25, 100)  # of four cells each: 15, 60, 125 and 500 hypotheses
LONGEST = (
    Case("shock", 0.0, {"span": 12, "target": 3.0}),
    Case("persistent", 0.0, {"phi": 0.9, "share": 0.5, "target": 2.0}),
)
SLOW = 100  # playbooks, of which a run takes a second: a quarter of the runs


def flagged(world: World, runs: int, seed: int) -> float:
    """Share of runs in which any claim is false at any weekly look, in %."""
    gate = GateSettings()
    found = [draw_run(world, gate, [seed, run]).false.any() for run in range(runs)]
    return round(float(100.0 * np.mean(found)), 1)


def opinions(cases: Sequence[Case], runs: int, seed: int) -> float:
    """The largest share of runs of any of these null worlds with a claim of losing, in %."""
    return round(max(claims_of(case, runs, seed)[0] for case in cases), 1)


def measure(runs: int, seed: int) -> dict[str, object]:
    """The document that is written."""
    many = {
        str(world.hypotheses): flagged(world, runs // 4 if count == SLOW else runs, seed)
        for count in PLAYBOOKS
        for world in [world_of("symbols", {"symbols": 5, "target": 4.0}, playbooks=count)]
    }
    nulls = [case for case in (*CASES.values(), *LONGEST) if case.planted is None]
    rare = [case for case in nulls if case.kind == "trend"]
    plain = [case for case in nulls if case.kind in ("counts", "symbols")]
    lasting = [case for case in nulls if case not in rare and case not in plain]
    return {
        "made_by": f"python -m benchmarks.gate_worlds.rates --runs {runs} --seed {seed}",
        "null_year_by_hypotheses": many,
        "shock_of_12_weeks": flagged(world_of("shock", {"span": 12, "target": 3.0}), runs, seed),
        "five_years_of_ar_9": flagged(five_years_of(0.9), runs, seed),
        "losing_plain": opinions(plain, runs, seed),
        "losing_lasting": opinions(lasting, runs, seed),
        "losing_rare_winners": opinions(rare, runs, seed),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and write."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gate_worlds.rates")
    parser.add_argument("--runs", type=int, default=400, help="runs of each world")
    parser.add_argument("--seed", type=int, default=3)
    given = parser.parse_args(arguments)
    text = json.dumps(measure(given.runs, given.seed), indent=2) + "\n"
    FILE.write_text(text, encoding="utf-8")
    sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
