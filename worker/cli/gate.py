"""`thinktwice gate`: the slow loop's gate on any table of resolved trades."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from services.high_level.report_lines import interval_text
from services.model_calls.quoting import count_noun
from worker.cli import wiring
from worker.cli.console import print_json, print_table, stdout_console
from worker.cli.options import JsonOption, argument, option
from worker.cli.run_options import ConfigArgument
from worker.pages.figures import shown_time
from worker.pages.tables import made_table
from worker.runs.interrupts import Interrupts
from worker.runs.progress import progress_bar, step
from worker.settings import load_settings

if TYPE_CHECKING:
    from services.high_level.table_gate import GradedTable
    from worker.pages.screen import PlainConsole


FIGURES = ("n", "blocks", "mean R", "against", "95 % at every look", "E", "detectable")


def gate(
    file: Annotated[
        Path,
        argument(
            metavar="FILE", help="CSV or Parquet with playbook, regime, timeframe, entry_time, exit_time, r."
        ),
    ],
    config: ConfigArgument = None,
    looks: Annotated[
        str | None,
        option(
            metavar="daily|weekly|monthly|N",
            help="Grade look by look as the schedule would have, or every N trades. [one look at the end]",
        ),
    ] = None,
    mode: Annotated[str | None, option(help="graded, runbook_or or significance_only. [graded]")] = None,
    reference: Annotated[
        float | None, option(metavar="R", help="What trades are held against, in R. [0]")
    ] = None,
    tz: Annotated[str | None, option("--tz", metavar="ZONE", help="Zone of times that carry none.")] = None,
    playbooks: Annotated[
        Path | None,
        option(
            metavar="FOLDER",
            help="Playbook files whose declared cells join the tested family. [what the table names]",
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Grade resolved trades: what they have proven, what they could have, and what may follow."""
    settings = load_settings(
        config,
        flags={
            "gate.mode": ("--mode", mode),
            "runtime.tz": ("--tz", tz),
            "runtime.playbooks": ("--playbooks", None if playbooks is None else str(playbooks)),
        },
    ).settings
    from worker.studies.graded_trades import Grading, gate_document

    books = wiring.playbooks(settings) if settings.runtime.playbooks is not None else ()
    asked = Grading(settings, looks, reference, tuple(books))
    with step(f"reading {file}"):
        trades = asked.read(file)
    graded = asked.grade(trades, _watch)
    document = gate_document(graded, settings, trades)
    if json:
        print_json(document)
    else:
        _render(graded, document)


def _watch(looks: Iterable[int]) -> Iterator[int]:
    """Looks as they are, under a bar."""
    given = list(looks)
    with progress_bar("grading", Interrupts(), "looks") as draw:
        for done, look in enumerate(given, start=1):
            yield look
            draw(done, len(given))


def _render(graded: "GradedTable", document: dict[str, Any]) -> None:
    from rich.table import Column

    from services.high_level.drift import decay_text

    console = stdout_console()
    _print_head(graded, document, console)
    rows = [
        (item, row)
        for item, row in zip(graded.clusters, document["clusters"], strict=True)
        if row["timeframe"] is None or item.cluster.tested_as.count("|") == 2
    ]
    heads = (
        Column("cluster", overflow="fold"),
        *(Column(name, justify="right", no_wrap=True) for name in FIGURES),
        Column("grade", no_wrap=True),
        Column("may lead to", no_wrap=True),
    )
    print_table(made_table(heads, (_cells(row) for _, row in rows), pad_edge=False))
    if len(rows) < len(document["clusters"]):
        console.print("A cell with one timeframe is shown once; --json has it on both levels.")
    console.print()
    for item, row in rows:
        first = item.first_significant_at
        when = "" if first is None or len(graded.looks) == 1 else f"; first at {shown_time(first)}"
        console.print(f"{' '.join(_parts(row))}: {row['reason']}{_torn_means(row)}{when}", soft_wrap=True)
    for alarm in filter(None, (item.alarm for item, _ in rows)):
        console.print(f"{decay_text(alarm)}; since {shown_time(alarm.known_at)}", soft_wrap=True)
    console.print(f"e-BH selects {', '.join(document['family']['selected']) or 'nothing'}", soft_wrap=True)


def _print_head(graded: "GradedTable", document: dict[str, Any], console: "PlainConsole") -> None:
    """What was looked at, as what family, and what was left out or held together."""
    family = document["family"]
    looks = f"{family['looks']} looks" if family["looks"] > 1 else "one look"
    said = f"{looks}, the last at {shown_time(graded.looks[-1])}"
    size = count_noun(family["size"], "hypothesis", "hypotheses")
    tested = f"family {family['id'][:12]} of {size}, q {family['q']:g}"
    console.print(f"{said}; {tested}, mode {family['mode']}", soft_wrap=True)
    left_out = document.get("left_out", {}).get("no_learn")
    if left_out:
        verb = "is" if left_out == 1 else "are"
        console.print(f"{count_noun(left_out, 'trade')} of no-learn zones {verb} left out")
    if shown := _positions(document["positions"]):
        console.print(shown, soft_wrap=True)
    limited = document.get("entries_per_block")
    if limited is not None and limited["beyond"]:
        console.print(_beyond(limited), soft_wrap=True)


def _positions(held: dict[str, Any]) -> str:
    """How many rows are one position, or may be, and what that does to the mean; empty where none is."""
    rows, mean, other = count_noun(held["rows"], "row"), f"mean {held['mean']:+.2f}R", held["mean_otherwise"]
    if held["equal"]:
        verbs = "is equal in every column to one before, and counts"
        if held["equal"] > 1:
            verbs = "are equal in every column to one before, and count"
        return f"{held['equal']:,} of {rows} {verbs}: {mean} with such rows, {other:+.2f}R without"
    if not held["merged"]:
        return ""
    joined = f"{rows} are {count_noun(held['positions'], 'position')}, held together by {held['by']}"
    return joined if other is None else f"{joined}: {mean}, {other:+.2f}R by row"


def _beyond(limited: dict[str, Any]) -> str:
    """That the account's limit of entries does not bound what a block of this table brings."""
    blocks, holds = count_noun(limited["beyond"], "block"), "holds" if limited["beyond"] == 1 else "hold"
    most = count_noun(limited["most"], "entry", "entries")
    return (
        f"envelope.max_entries_per_block is {limited['limit']:,}, but {blocks} of this table {holds} more "
        f"({most} in the {limited['block']} of {limited['begins'][:10]}): the limit does not bound the "
        "stakes; raise it, or leave it out"
    )


def _torn_means(row: dict[str, Any]) -> str:
    """Why a cluster leans to nothing whose raw mean lies on the other side of the reference."""
    if row["mean"] is None or (row["mean"] - row["reference"]) * (row["mean_raw"] - row["reference"]) >= 0.0:
        return ""
    return f"; leans to nothing, raw mean {row['mean_raw']:+.3g}: outliers carry the mean"


def _parts(row: dict[str, Any]) -> list[str]:
    """Playbook, regime and timeframe of a cluster, as far as it has them."""
    return [row[name] for name in ("playbook", "regime", "timeframe") if row[name] is not None]


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    mean = "-" if row["mean"] is None else f"{row['mean']:+.2f}"
    least = "-" if row["smallest_detectable"] is None else f"{row['smallest_detectable']:.2f}"
    return (
        "  " * (len(_parts(row)) - 1) + _parts(row)[-1],  # below those that it belongs to
        f"{row['n']:,}",
        f"{row['blocks']:,}",
        mean,
        f"{row['reference']:+.2f}",
        interval_text(row["lower"], row["upper"], row["interval_kind"]),
        "-" if row["leaning"] is None else f"{row['leaning']} {row['e_value']:.3g}",
        least,
        row["grade"],
        row["strongest_action"],
    )
