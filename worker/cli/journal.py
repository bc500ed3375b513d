"""`thinktwice journal`: the journal of a run in order, one event a line."""

import json as json_text
from typing import Annotated

import typer

from schemas.errors import ConfigError, nearest
from services.journal.chain import JournalRow
from services.journal.kinds import JOURNAL_KINDS
from services.model_calls.quoting import visible
from worker.cli.console import print_json_line, print_page, time_option
from worker.cli.options import LATEST, DbOption, RunArgument, open_for_run, option
from worker.pages.figures import comment_text, shown_time

LINE_WIDTH = 200


async def journal(
    run: RunArgument = LATEST,
    kind: Annotated[list[str] | None, option(help="Only this kind; give it again for more.")] = None,
    until: Annotated[
        str | None, option(metavar="TIME", help="Only what was known at TIME (ISO, UTC), inclusive.")
    ] = None,
    jsonl: Annotated[bool, typer.Option("--jsonl", help="One JSON object a line; times in ns.")] = False,
    telemetry: Annotated[
        bool, typer.Option("--telemetry", help="Add what was measured, not decided.")
    ] = False,
    db: DbOption = None,
) -> None:
    """Print the journal of a run, in order."""
    kinds = None if not kind else {_known_kind(name) for name in kind}
    limit = None if until is None else time_option(until, "--until")
    async with open_for_run(db, run, guards=True) as (store, record):
        async for row in store.journal.rows(record.run_id, kinds=kinds, until=limit):
            if jsonl:
                print_json_line(json_line(row, telemetry=telemetry))
            else:
                print_page(readable_line(row, telemetry=telemetry) + "\n")


def _known_kind(name: str) -> str:
    if name not in JOURNAL_KINDS:
        guess = nearest(name, JOURNAL_KINDS) or f" Kinds are {', '.join(sorted(JOURNAL_KINDS))}."
        raise ConfigError(f"--kind {name!r} is not a kind of event.{guess}")
    return name


def json_line(row: JournalRow, *, telemetry: bool) -> str:
    """The row as one JSON object; the payload is the stored text."""
    head = {
        "seq": row.seq,
        "ts_event": row.ts_event,
        "known_at": row.known_at,
        "kind": row.kind,
        "symbol": row.symbol,
    }
    start = json_text.dumps(head, separators=(",", ":"), ensure_ascii=False)[:-1]
    measured = f',"telemetry":{row.telemetry or "null"}' if telemetry else ""
    return f'{start},"payload":{row.payload},"hash":"{row.hash}"{measured}}}'


def readable_line(row: JournalRow, *, telemetry: bool) -> str:
    """The row for a reader: sequence, time known, kind, symbol and as much of the payload as fits."""
    text = f"{row.seq:>6}  {shown_time(row.known_at):<20}  {row.kind:<20}  {row.symbol or '':<8}  "
    text += _brief(row.payload) + (f"  {_brief(row.telemetry)}" if telemetry and row.telemetry else "")
    text = visible(text)
    return text if len(text) <= LINE_WIDTH else f"{text[: LINE_WIDTH - 3]}..."


def _brief(payload: str) -> str:
    try:
        found = json_text.loads(payload)
    except ValueError:  # the row was changed: `verify` says so, this command shows what is there
        return payload
    items = found.items() if isinstance(found, dict) else {"": found}.items()
    return " ".join(
        comment_text(str(value)) if key == "comment" else f"{key}={_short(value)}"
        for key, value in items
        if value is not None
    )


def _short(value: object) -> str:
    if isinstance(value, (dict, list)):
        return json_text.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return f"{value:g}" if isinstance(value, float) else str(value)
