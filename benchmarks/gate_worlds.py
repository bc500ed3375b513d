"""The gate on worlds with known truth: the whole table of `thinktwice worlds`, for `make worlds`.

`uv run python -m benchmarks.gate_worlds` draws every row with two seeds and runs the sessions of
`thinktwice worlds --engine`, keeps finished parts in `out/`, goes on with them when it is called again, and
writes its block of docs/reference/benchmarks.md.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from schemas.settings import GateSettings
from tools.docs_pages import ROOT, table
from worker.cli.worlds import cells_of, columns, headline
from worker.studies.worlds.engine.rows import NO_HARM, PLANTED, engine_rows
from worker.studies.worlds.figures import document_of
from worker.studies.worlds.runs import KeptParts, cores, gate_hash, measure_rows
from worker.studies.worlds.table import rows

RUNS, SEEDS = 400, (1, 2)
SESSIONS = {PLANTED: 10, NO_HARM: 50}
PAGE = ROOT / "docs" / "reference" / "benchmarks.md"
BEGIN, END = "<!-- worlds: written by `make worlds` -->", "<!-- worlds: end -->"
MEANING = {
    "null": """Nothing is to be found: years in which any claim of fifteen hypotheses was flagged, at any
weekly look.""",
    "five years": "The same over five years, one playbook of four cells.",
    "wrong side": "Profitable worlds: how often they are called losing.",
    "burst": """Runs that lose, at the evidence of a promotion (40): at the end, ever, and both with the
account's limit of trades a block declared.""",
    "interval": """Runs whose interval (nominal 95 %) covered at every look the mean of winsorised R that it
names.""",
    "power": "One cell of fifteen hypotheses loses: years in which that was found by 52 and 104 blocks.",
    "decay": """A cluster whose mean falls at half: evidence of 20 within 52 blocks, and the e-detector
against the edge that the playbook declares.""",
    PLANTED: """A playbook buys strength where prices fall back, and its own grid holds the right side.
*Fault* is what that costs without the slow loop, *share* how much of it the slow loop wins back, *blocks
after* how many follow its first action (median).""",
    NO_HARM: """Nothing to find, or an edge that turns at half. *Harm* counts runs that the slow loop made
worse by more than 1 % of return.""",
}
INTRODUCTION = """Outcomes in R whose truth is known, looked at every week by the gate of the slow loop
([how it decides](../explanation/the-gate.md)). A rate stands with its standard error and its target, and
holds when it is within two errors of it. Worlds marked *held out* are no part of the
design; their rates were seen before the last settings (second largest row, cut at 50R) were chosen. The last
two columns of flags are a count with a win-rate cut (20 trades, under 40 % winners) and weekly t-tests
(two-sided, 5 %) on the same draws. `thinktwice worlds` prints a part of it, and any world of your own."""

SESSIONS_INTRODUCTION = """Bars whose truth is known, through whole sessions at the default settings, with
the slow loop on and off: correlated symbols, GARCH(1,1) with t(5) shocks, prices that fall back to an
anchor by 12 % a bar or not at all, costs and all. Differences are on less off, with 95 % intervals over runs
by Student's t; returns are logarithms. `thinktwice worlds --engine` runs a part of it, and any world of your
own."""


def measure(seed: int, runs: int) -> dict[str, Any]:
    """The document of every row with one seed; parts that `out/` holds are not drawn again."""
    gate, chosen = GateSettings(), rows()
    kept = KeptParts(ROOT / "out" / f"worlds-{gate_hash(gate)}-{seed}.jsonl", seed, gate)
    told = -1

    def tell(done: int, total: int) -> None:
        nonlocal told
        if 100 * done // total > told:
            told = 100 * done // total
            sys.stderr.write(f"seed {seed}: {done:,} of {total:,} runs\n")

    found = measure_rows(chosen, runs, seed, gate, cores(), kept, tell)
    return document_of(chosen, found, runs, seed, gate_hash(gate))


def sessions(group: str, seed: int, runs: int) -> dict[str, Any]:
    """The document of one group of whole sessions; those that `out/` holds are not run again."""
    gate = GateSettings()
    chosen = [row for row in engine_rows() if row.group == group]
    kept = KeptParts(
        ROOT / "out" / f"sessions-{gate_hash(gate, engine=True)}-{seed}.jsonl", seed, gate, engine=True
    )

    def tell(done: int, total: int) -> None:
        sys.stderr.write(f"{group}: {done:,} of {total:,} runs\n")

    found = measure_rows(chosen, runs, seed, gate, cores(), kept, tell)
    return document_of(chosen, found, runs, seed, gate_hash(gate, engine=True))


def sessions_section(documents: Sequence[dict[str, Any]]) -> str:
    """The tables of whole sessions."""
    parts = ["### Whole sessions\n\n" + SESSIONS_INTRODUCTION]
    for document in documents:
        found = document["rows"]
        parts.append(f"**{headline(document)}**")
        parts.append(f"{MEANING[found[0]['group']]}\n\n")
        parts[-1] += table(("world", *columns(found)), [tuple(cells_of(row, found)) for row in found])
    return "\n\n".join(parts)


def section(documents: Sequence[dict[str, Any]]) -> str:
    """The tables, seed beside seed."""
    first = documents[0]
    parts = [f"{INTRODUCTION} {first['runs']} runs a world and seed."]
    parts += [f"**{headline(document)}**" for document in documents]
    for group in dict.fromkeys(row["group"] for row in first["rows"]):
        found = [[row for row in document["rows"] if row["group"] == group] for document in documents]
        lines = [
            (*cells_of(row, outcome)[:1], str(document["seed"]), *cells_of(row, outcome)[1:])
            for same in zip(*found, strict=True)
            for document, outcome, row in zip(documents, found, same, strict=True)
        ]
        parts.append(f"### {group.capitalize()}\n\n{MEANING[group]}\n\n")
        parts[-1] += table(("world", "seed", *columns(found[0])), lines)
    return "\n\n".join(parts)


def kept_section(page: Path = PAGE) -> str:
    """What the page has between the markers, so that `make bench` leaves it."""
    text = page.read_text("utf-8")
    return text[text.index(BEGIN) + len(BEGIN) : text.index(END)].strip()


def write(text: str, page: Path = PAGE) -> None:
    """Put the section between the markers of the page."""
    before, _, rest = page.read_text("utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", "utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and write."""
    parser = argparse.ArgumentParser(
        description="Measure every row of the worlds' table and write its section."
    )
    parser.add_argument("--runs", type=int, default=RUNS, help="runs of each world and seed")
    parser.add_argument("--sessions", type=int, help="runs of each world of whole sessions")
    parser.add_argument("--print", action="store_true", help="print the section, leave the page alone")
    given = parser.parse_args(arguments)
    text = section([measure(seed, given.runs) for seed in SEEDS])
    ran = [sessions(group, SEEDS[0], given.sessions or runs) for group, runs in SESSIONS.items()]
    text += "\n\n" + sessions_section(ran)
    if given.print:
        sys.stdout.write(text + "\n")
    else:
        write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
