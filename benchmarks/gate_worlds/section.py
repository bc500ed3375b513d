"""The section on worlds of docs/reference/benchmarks.md: the tables of the documents, and their place."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.gate_worlds.engine.rows import NO_HARM, PLANTED
from benchmarks.gate_worlds.figures import pool_documents
from services.model_calls.quoting import count_noun
from tools.docs_pages import ROOT, table

PAGE = ROOT / "docs" / "reference" / "benchmarks.md"
SHOWN_RULES = ("count and win rate", "weekly t-tests")
BEGIN, END = "<!-- worlds: written by `make worlds` -->", "<!-- worlds: end -->"
MEANING = {
    "null": """Nothing is to be found: years in which any claim of fifteen hypotheses was flagged, at any
weekly look.""",
    "beyond the rule": """The same where something lasts longer than the gate can see: rates to know, no
promise.""",
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
(two-sided, 5 %) on the same draws."""

SESSIONS_INTRODUCTION = """Bars whose truth is known, through whole sessions at the default settings, with
the slow loop on and off: correlated symbols, GARCH(1,1) with t(5) shocks, prices that fall back to an
anchor by 12 % a bar or not at all, costs and all. Differences are on less off, with 95 % intervals over runs
by Student's t; returns are logarithms."""


def headline(document: dict[str, Any]) -> str:
    """The worst null world, and what does not hold."""
    parts = []
    worst = document["worst"]
    if worst is not None:
        text = f"{_percent(worst['rate'])} (se {_percent(worst['se'])}) of its runs"
        parts.append(f"worst null world: {worst['world']}, flagged in {text}")
    missed = len(document["broken"])
    held = f"{document['targets'] - missed} of {document['targets']} targets hold"
    parts.append(held if document["targets"] else "no target is set for this world")
    if missed:
        parts.append(
            "not: " + "; ".join(f"{figure['figure']} in {figure['world']}" for figure in document["broken"])
        )
    seeds = document.get("seeds", [document["seed"]])
    of_seeds = f"{'seed' if len(seeds) == 1 else 'seeds'} {' and '.join(map(str, seeds))}"
    return f"{'; '.join(parts)} ({count_noun(document['runs'], 'run')} a world, {of_seeds})"


def columns(found: list[dict[str, Any]]) -> list[str]:
    """Heads of the figures of one group, after the world's name."""
    parts = ("rates", "differences", "medians")
    return list(dict.fromkeys(name for part in parts for row in found for name in row[part]))


def cells_of(row: dict[str, Any], found: list[dict[str, Any]]) -> list[str]:
    """One row: the world's name and its figures."""
    name = f"{row['world']} (held out)" if row["held_out"] else row["world"]
    return [name, *(_cell(row, column) for column in columns(found))]


def _cell(row: dict[str, Any], name: str) -> str:
    if name in row["medians"]:
        value = row["medians"][name]
        return "-" if value is None else f"{value:.3g}"
    if name in row["differences"]:
        return _difference(row["differences"][name])
    rate = row["rates"].get(name)
    if rate is None or rate["rate"] is None:
        return "-"
    if name in SHOWN_RULES:
        return _percent(rate["rate"])
    return f"{_percent(rate['rate'])} ± {100.0 * rate['se']:.1f}{_verdict(rate)}"


def _difference(one: dict[str, Any]) -> str:
    if one["mean"] is None:
        return "-"
    text = f"{one['mean']:+.2f}"
    if one["lower"] is not None:
        text += f" [{one['lower']:+.2f}, {one['upper']:+.2f}]"
    if "target" not in one:
        return text
    return f"{text} (> {one['target']:.2g}{'' if one['holds'] else ', MISSED'})"


def _verdict(rate: dict[str, Any]) -> str:
    if "target" not in rate:
        return ""
    bound = f"{'>=' if rate['at_least'] else '<='} {100.0 * rate['target']:g}"
    return f" ({bound}{'' if rate['holds'] else ', MISSED'})"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100.0 * share:.1f} %"


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
    """The tables, the runs of all seeds pooled."""
    document = pool_documents(documents)
    parts = [INTRODUCTION, f"**{headline(document)}**"]
    for group in dict.fromkeys(row["group"] for row in document["rows"]):
        found = [row for row in document["rows"] if row["group"] == group]
        parts.append(f"### {group.capitalize()}\n\n{MEANING[group]}\n\n")
        parts[-1] += table(("world", *columns(found)), [tuple(cells_of(row, found)) for row in found])
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
