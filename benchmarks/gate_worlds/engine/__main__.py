"""Does it help? What the slow loop wins back of a planted fault, from a slight one to a plain one.

`uv run python -m benchmarks.gate_worlds.engine` (`make worlds-engine`) prints a line for each pull and
timeframe at the default settings: in how many runs the better side came into force within 120 blocks and by
the end, the share of the fault that was won back, in the mean, and runs that lost over 1 %. The last line of
a timeframe is a world without a fault. `--seeds N --pulls .04 --timeframes 4h` make it shorter.
"""

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

from benchmarks.gate_worlds.engine.measure import Outcome, on_and_off
from benchmarks.gate_worlds.engine.world import EngineWorld
from schemas.settings import GateSettings
from worker.studies.executors.choosing import cores

PULLS, TIMEFRAMES = (0.02, 0.04, 0.08, 0.12), {"4h": 10, "1d": 4}
BLOCKS, EARLY = 160, 120
FIRST_SEED = 21


def curve(pulls: Sequence[float], timeframe: str) -> list[EngineWorld]:
    """Worlds of one timeframe, the one without a fault last."""
    faults = [EngineWorld("planted", timeframe, blocks=BLOCKS, pull=pull) for pull in pulls]
    return [*faults, EngineWorld("null", timeframe, blocks=BLOCKS)]


def line_of(world: EngineWorld, found: Sequence[Outcome]) -> str:
    """The figures of some runs of a world."""
    runs = len(found)
    until = [item["blocks until"] for item in found]
    early = sum(blocks is not None and blocks <= EARLY for blocks in until)
    used = sum(blocks is not None for blocks in until)
    harmed = sum(bool(item["harm"]) for item in found)
    gain = sum(item["log return"] or 0.0 for item in found) / runs
    parts = [f"gain {gain:+.3f}", f"harmed {harmed} of {runs}"]
    if world.kind == "planted":
        fault = sum(item["fault"] or 0.0 for item in found) / runs
        parts[:0] = [
            f"used within {EARLY} blocks {early}, by the end {used} of {runs}",
            f"fault {fault:+.3f}, won back {gain / fault:.0%}" if fault > 0.0 else f"fault {fault:+.3f}",
        ]
    shown = f" {world.pull:g}" if world.kind == "planted" else ""
    return f"{world.timeframe} {world.kind}{shown}: {'; '.join(parts)}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the curve."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gate_worlds.engine", description=__doc__)
    parser.add_argument("--seeds", type=int, help="runs of each world; 10 at 4h and 4 at 1d by default")
    parser.add_argument(
        "--pulls", type=float, nargs="*", default=PULLS, help="share lost to the anchor a bar"
    )
    parser.add_argument("--timeframes", choices=TIMEFRAMES, nargs="*", default=list(TIMEFRAMES))
    given = parser.parse_args(arguments)
    with ProcessPoolExecutor(cores(), mp_context=get_context("spawn")) as pool:
        for timeframe in given.timeframes:
            seeds = range(given.seeds or TIMEFRAMES[timeframe])
            for world in curve(given.pulls, timeframe):
                found = list(
                    pool.map(
                        partial(on_and_off, world, GateSettings()), [[FIRST_SEED, seed] for seed in seeds]
                    )
                )
                sys.stdout.write(line_of(world, found) + "\n")
                sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
