"""Spread and comparison of models as a person reads them, from their JSON documents and nothing else."""

from collections.abc import Iterable, Sequence
from typing import Any

from rich.table import Table

from worker.cli.console import stdout_console
from worker.pages.figures import DASH, counts, milliseconds, percent, shown_time

Document = dict[str, Any]
SHOWN = 20


def render_spread(document: Document) -> None:
    """The whole first, then the questions that vary most."""
    source = document["run_id"] or document["cassette"]
    said, first = "verdicts after the rules' floor", "recorded"
    if document["basis"] == "stated":
        said, first = "verdicts as stated", "first"
    rows = [
        ("asked", f"{document['questions']:,} questions, {document['samples']:,} samples each"),
        ("answered", f"{document['answered']:,} of {document['asked']:,}"),
        ("agreement", f"{percent(document['agreement'])} with the {first} verdict"),
        ("unstable", f"{document['unstable']:,} of {document['questions']:,} questions"),
        ("verdicts", counts(document["verdicts"])),
        *_cost(document),
    ]
    print_rows(f"spread of {source}   {document['model']}   {said}", rows)
    order = sorted(document["by_question"], key=_agreement)
    lines = [
        [
            *_place(one),
            one["recorded"] or DASH,
            counts(one["verdicts"]),
            counts(one["refused"] | one["failed"]),
            percent(one["agreement"]),
        ]
        for one in order
    ]
    print_table(("bar", "symbol", "playbook", "rules", "recorded", "again", "no verdict", "agreement"), lines)


def render_comparison(document: Document) -> None:
    """What moved in all, by transition, then plan by plan."""
    prompt, model = document["prompt"], document["model"]
    p_value = document["p_value"]
    rows = [
        ("prompt", f"{prompt['recorded'][:16]} -> {prompt['asked'][:16]}"),
        ("model", f"{model['recorded']} -> {model['asked']}"),
        *((f"{name} prompt", counts(said)) for name, said in document.get("verdicts", {}).items()),
        ("answered", f"{document['answered']:,} of {document['questions']:,} questions"),
        ("unchanged", f"{document['unchanged']:,}"),
        ("stricter", f"{document['stricter']:,}"),
        ("milder", f"{document['milder']:,}"),
        ("sign test", DASH if p_value is None else f"p = {p_value:.3g}"),
        *_cost(document),
    ]
    print_rows(f"comparison with {document['run_id']}", rows)
    moves = [
        [one["from"], one["to"], str(one["count"]), counts(one["findings"])]
        for one in document["transitions"]
    ]
    print_table(("from", "to", "plans", "with findings"), moves)
    lines = [
        [*_place(one), one["from"], one["to"], ", ".join(one["cited"]) or one["refused"] or DASH]
        for one in document["changed"]
    ]
    print_table(("bar", "symbol", "playbook", "rules", "from", "to", "cited"), lines)


def _cost(document: Document) -> Iterable[tuple[str, str]]:
    usd = document["usd"]
    yield "refused", counts(document["refused"])
    yield "no reply", counts(document["failed"])
    yield "late", f"{percent(document['late_share'])} of the replies, for a run"
    yield "cost", f"{document['tokens']:,} tokens" + ("" if usd is None else f"   {usd:.4f} USD")
    if document["latency_ms"] is not None:
        p50, p95 = (milliseconds(document["latency_ms"][name]) for name in ("p50", "p95"))
        yield "reply took", f"p50 {p50}   p95 {p95}"
    if document["recorded_unanswered"]:
        yield "not asked again", f"{counts(document['recorded_unanswered'])}: the run got no answer there"
    if document["left_out"]:
        yield "left out", f"{counts(document['left_out'])}: no question about a plan"


def _place(one: Document) -> list[str]:
    if "key" in one:
        return [one["key"][:16], DASH, DASH, DASH]
    return [
        shown_time(one["known_at"]),
        one["symbol"],
        f"{one['playbook_id']} {one['direction']}",
        one["rules"],
    ]


def _agreement(one: Document) -> float:
    return 2.0 if one["agreement"] is None else float(one["agreement"])


def print_rows(title: str, rows: Sequence[tuple[str, str]]) -> None:
    """A title and named figures below it."""
    table = Table(show_header=False, box=None, padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(name, value)
    console = stdout_console()
    console.print(title, style="bold", soft_wrap=True)
    console.print(table)


def print_table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
    """The first lines under their heads; nothing without one."""
    if not lines:
        return
    table = Table(*head, box=None, padding=(0, 2, 0, 0))
    for line in lines[:SHOWN]:
        table.add_row(*line)
    console = stdout_console()
    console.print()
    console.print(table)
    if len(lines) > SHOWN:
        console.print(f"and {len(lines) - SHOWN:,} more (--json shows all)")
