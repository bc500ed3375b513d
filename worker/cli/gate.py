"""`thinktwice gate`: the slow loop's gate on any table of resolved trades."""

from pathlib import Path
from typing import Annotated

from worker.cli import options
from worker.cli.options import argument, option
from worker.cli.printing import print_document
from worker.pages.gate_text import gate_parts
from worker.runs import run_inputs
from worker.runs.progress import step, watch_rows
from worker.settings import load_settings
from worker.studies.trade_forms import FORMS


def gate(
    file: Annotated[
        Path,
        argument(
            metavar="FILE",
            help="CSV or Parquet: entry_time, exit_time and r, or the trades of a program that --read knows.",
        ),
    ],
    config: options.Config = None,
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
    read: Annotated[
        str | None,
        option(metavar="PROGRAM", help=f"Who wrote the table: {', '.join(FORMS)}. [as its columns say]"),
    ] = None,
    columns: Annotated[
        str | None, option(metavar="ROLE=NAME,...", help="Columns of other names, such as r=Result,stop=SL.")
    ] = None,
    trials: Annotated[
        int | None, option(metavar="N", help="Variants tried before this one, itself among them. [not known]")
    ] = None,
    against: Annotated[
        Path | None,
        option(metavar="FILE", help="Another log of the same dates: which one makes more, in pairs?"),
    ] = None,
    json: options.Json = False,
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
    from worker.studies.graded_trades import Grading, compare_logs, gate_document

    books = run_inputs.playbooks(settings) if settings.runtime.playbooks is not None else ()
    named = dict(part.partition("=")[::2] for part in (columns or "").split(",") if part)
    request = Grading(settings, looks, reference, tuple(books), read, named, trials)
    with step(f"reading {file}"):
        trades = request.read(file)
    graded = request.grade(trades, watch_rows("grading", "looks"))
    document = gate_document(graded, settings, trades, trials)
    if against is not None:
        document["against"] = compare_logs(trades, request.read(against, trades.unit), settings)
    print_document(document, json, gate_parts)
