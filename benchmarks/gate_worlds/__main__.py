"""The gate on worlds with known truth, for `make worlds`.

`uv run python -m benchmarks.gate_worlds` draws every row with two seeds and runs the whole sessions, keeps
finished parts in `out/`, goes on with them when it is called again, and writes its block of
docs/reference/benchmarks.md. `--world shock --span 6 --share 0.3 --target 3` prints that world alone, and
`--quick` the small table of a minute; both write nothing.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from benchmarks.gate_worlds.catalogue import KINDS, world_of
from benchmarks.gate_worlds.engine.rows import NO_HARM, PLANTED, engine_rows
from benchmarks.gate_worlds.figures import document_of
from benchmarks.gate_worlds.payoffs import Parameters
from benchmarks.gate_worlds.runs import KeptParts, gate_hash, measure_rows
from benchmarks.gate_worlds.section import section, sessions_section, write
from benchmarks.gate_worlds.table import NULL, Row, rows
from schemas.settings import GateSettings
from tools.docs_pages import ROOT
from worker.studies.executors.choosing import cores

RUNS, SEEDS, QUICK_RUNS = 400, (1, 2), 100
SESSIONS = {PLANTED: 10, NO_HARM: 50}


def measure(chosen: Sequence[Row], runs: int, seed: int, *, engine: bool = False) -> dict[str, Any]:
    """The document of some rows with one seed; parts that `out/` holds are not drawn again."""
    gate = GateSettings()
    made_by = gate_hash(gate, engine=engine)
    name = f"{'sessions' if engine else 'worlds'}-{made_by}-{seed}.jsonl"
    kept = KeptParts(ROOT / "out" / name, seed, gate, engine=engine)
    shown = -1

    def show(done: int, total: int) -> None:
        nonlocal shown
        if 100 * done // total > shown:
            shown = 100 * done // total
            sys.stderr.write(f"seed {seed}: {done:,} of {total:,} runs\n")

    found = measure_rows(chosen, runs, seed, gate, cores(), kept, show)
    return document_of(chosen, found, runs, seed, made_by)


def _chosen(parser: argparse.ArgumentParser, given: argparse.Namespace) -> Row | None:
    """The row of `--world` with what is set about it; None where every row is measured."""
    set_of = {field.name: getattr(given, field.name) for field in fields(Parameters)}
    set_of = {name: value for name, value in set_of.items() if value is not None}
    if given.world is None:
        if set_of:
            parser.error(f"--{next(iter(set_of))} says something about one world: name it by --world")
        return None
    takes = KINDS[given.world].takes
    for name, value in set_of.items():
        if name not in takes:
            parser.error(
                f"--{name} says nothing about {given.world!r}, which takes {', '.join(sorted(takes))}"
            )
        if value < 0 or (value == 0 and isinstance(value, int)):
            parser.error(f"--{name} {value!r} has to be above 0")
    rest = {"years": given.years, "playbooks": given.playbooks, "edge": given.edge}
    return Row(NULL, "flags", world_of(given.world, set_of, **rest), (), part=5)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and write."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.gate_worlds",
        description="Measure every row of the worlds' table and write its section.",
    )
    parser.add_argument("--runs", type=int, default=RUNS, help="runs of each world and seed")
    parser.add_argument("--sessions", type=int, help="runs of each world of whole sessions")
    parser.add_argument("--quick", action="store_true", help="print the small table of a minute, one seed")
    parser.add_argument("--print", action="store_true", help="print the section, leave the page alone")
    one = parser.add_argument_group("one world, which is printed alone")
    one.add_argument("--world", choices=sorted(KINDS), help="its kind; the defaults are those of the tables")
    for parameter in fields(Parameters):
        kind = type(parameter.default)
        one.add_argument(f"--{parameter.name}", type=kind, metavar=kind.__name__.upper())
    one.add_argument("--years", type=int, default=1, help="of 52 weeks")
    one.add_argument("--playbooks", type=int, default=3, help="of four cells each")
    one.add_argument("--edge", type=float, default=0.0, help="true mean R of every trade")
    given = parser.parse_args(arguments)
    if (row := _chosen(parser, given)) is not None:
        sys.stdout.write(section([measure([row], given.runs, seed) for seed in SEEDS]) + "\n")
        return 0
    if given.quick:
        chosen = [row for row in rows() if row.quick]
        sys.stdout.write(section([measure(chosen, min(given.runs, QUICK_RUNS), SEEDS[0])]) + "\n")
        return 0
    text = section([measure(rows(), given.runs, seed) for seed in SEEDS])
    ran = []
    for group, runs in SESSIONS.items():
        chosen = [row for row in engine_rows() if row.group == group]
        ran.append(measure(chosen, given.sessions or runs, SEEDS[0], engine=True))
    text += "\n\n" + sessions_section(ran)
    if given.print:
        sys.stdout.write(text + "\n")
    else:
        write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
