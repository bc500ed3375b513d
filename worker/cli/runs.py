"""`thinktwice runs journal verify why trials`: what a store holds, row by row, whether it holds, and why."""

import json as json_text
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from schemas.canonical import ns_to_datetime
from schemas.errors import ConfigError, nearest
from services.journal.chain import JournalRow
from services.journal.index import FILL_KINDS, Event, JournalIndex
from services.journal.kinds import JOURNAL_KINDS
from services.journal.lineage import LineageNode, mark_pruned, trace_named
from services.journal.sparse_index import read_sparsely
from services.model_calls.quoting import count_noun, visible
from worker.cli import options
from worker.cli.options import LATEST, define_features, option
from worker.cli.printing import print_document, print_json_line, print_line, time_option
from worker.cli.stores import listed_runs, open_for_run
from worker.pages.figures import DASH, comment_text, fact_text, few_symbols, percent, shown_time
from worker.pages.text_parts import Part, rows_table
from worker.runs.progress import told_rows, watch_rows

if TYPE_CHECKING:
    from services.store import RunRecord

SHOWN_FILLS, SHOWN_IDS = 5, 10
LINE_WIDTH = 200
EMPTY_SELECTION: dict[str, Any] = {"ranges": [], "left_out": []}
COLUMNS = ("run", "status", "made", "name", "symbols", "bars", "return", "trades", "events", "head")


async def runs(db: options.Db = None, json: options.Json = False) -> None:
    """List the runs of a store, oldest first; exit 2 when one of them is damaged."""
    from worker.review.run_list import document_of

    async with listed_runs(db) as (_, records):
        found = [_examine(record) for record in records]
    rows = [row for _, row in found]
    print_document([document_of(record) for record, _ in found], json, lambda _: [rows_table(rows, COLUMNS)])
    if damages := [record.damage for record, _ in found if record.damage is not None]:
        from services.store.failures import StoreDamaged

        raise StoreDamaged("; ".join(damages))


def _examine(record: "RunRecord") -> "tuple[RunRecord, dict[str, Any]]":
    """A run with its row; figures of another shape than the program writes are damage, too."""
    from services.store.failures import MEND

    damaged = dict.fromkeys(COLUMNS) | {"run": record.run_id, "status": "damaged"}
    try:
        return record, _row(record) if record.damage is None else damaged
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        what = f"{type(error).__name__}: {error}"
        return replace(record, damage=f"the row of run {record.run_id} is damaged ({what}): {MEND}"), damaged


def _row(record: "RunRecord") -> dict[str, Any]:
    document = record.document or {}
    performance, ended = document.get("performance", {}), document.get("data", {})
    trades, causes = performance.get("trades", DASH), document.get("why_no_trade")
    bars = record.data.get("bars", ended.get("bars"))  # a paper run knows it when its feed has ended
    early = "" if record.ended_early is None else f" ({record.ended_early['reason']})"
    doubts = f" ({count_noun(len(ended['doubts']), 'doubt')})" if ended.get("doubts") else ""
    cells = (
        *(record.run_id, f"{record.status}{early}"),
        ns_to_datetime(record.created_at).strftime("%Y-%m-%d %H:%M"),
        *(record.name, few_symbols(record.data["symbols"])),
        f"{record.data['timeframe']} {DASH if bars is None else f'{bars:,}{doubts}'}",
        *(
            percent(performance.get("total_return")),
            f"{trades} ({causes[0]['reason']})" if causes else trades,
        ),
        *(record.events, record.head_hash[:8]),
    )
    return dict(zip(COLUMNS, cells, strict=True))


async def trials(
    pbo: Annotated[
        bool, typer.Option("--pbo", help="Whether the best of the runs on the same bars is more than luck.")
    ] = False,
    db: options.Db = None,
    json: options.Json = False,
) -> None:
    """List what was tried in a store on which bars, and what the next run on them starts with."""
    from worker.pages.study_text import trials_parts
    from worker.runs.trials import list_ranges

    if pbo:
        from worker.review.selected_runs import selected_runs

    async with listed_runs(db) as (store, _):
        found = [] if store is None else await store.trials.all()
        selection = (
            await selected_runs(store, watch_rows("reading", "runs"))
            if pbo and store is not None
            else EMPTY_SELECTION
        )
    document = {"ranges": list_ranges(found)} | ({"selection": selection} if pbo else {})
    print_document(document, json, trials_parts)


async def journal(
    run: options.RunArgument = LATEST,
    kind: Annotated[list[str] | None, option(help="Only this kind; give it again for more.")] = None,
    until: Annotated[
        str | None, option(metavar="TIME", help="Only what was known at TIME (ISO, UTC), inclusive.")
    ] = None,
    jsonl: Annotated[bool, typer.Option("--jsonl", help="One JSON object a line; times in ns.")] = False,
    telemetry: Annotated[
        bool, typer.Option("--telemetry", help="Add what was measured, not decided.")
    ] = False,
    db: options.Db = None,
) -> None:
    """Print the journal of a run, in order."""
    kinds = None if not kind else {_known_kind(name) for name in kind}
    limit = None if until is None else time_option(until, "--until")
    async with open_for_run(db, run, guards=True) as (store, record):
        async for row in store.journal.rows(record.run_id, kinds=kinds, until=limit):
            if jsonl:
                print_json_line(json_line(row, telemetry=telemetry))
            else:
                print_line(readable_line(row, telemetry=telemetry))


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


async def verify(
    run: options.RunArgument = LATEST,
    data: options.Data = None,
    features: options.Features = None,
    db: options.Db = None,
    json: options.Json = False,
) -> None:
    """Check the hash chain of a run and replay it: exit 0 when both hold, 1 when one does not."""
    from worker.review.verification import verify_run

    define_features(features)
    async with open_for_run(db, run, changed=True, guards=True) as (store, record):
        result = await verify_run(store, record, data)
    print_document(result, json, _describe_check)
    if not result["ok"]:
        raise typer.Exit(1)


def _describe_check(result: dict[str, Any]) -> Iterator[Part]:
    chain, ids, replay = result["chain"], result["references"], result["replay"]
    rows, of_ids = count_noun(chain["rows"], "row"), count_noun(ids["checked"], "id")
    early = f": {result['ended_early']['message']}" if result["ended_early"] else ""
    yield f"run {result['run_id']} ({result['status']}){early}"
    held = f"holds: {rows}, head {chain['head_hash'][:16]}"
    yield "chain", held if chain["ok"] else f"BROKEN: {chain['problem']}"
    if result["next"] is not None:
        yield "next", result["next"]
    lost = ids["problem"] or f"DANGLING: {len(ids['dangling']):,} of {of_ids}"
    pruned = f", {ids['pruned']:,} of them to pruned rows" if ids["pruned"] else ""
    yield "ids", f"resolve: {of_ids}{pruned}" if ids["ok"] else lost
    yield from (("", line) for line in ids["dangling"][:SHOWN_IDS])
    yield "replay", _describe_replay(replay)
    changed = result["stored"]["problems"]
    yield from (("stored", f"CHANGED: {line}") for line in changed)
    if not changed:
        yield "stored", "holds: document, bars and orders are as they were written"
    recorded = result["environment"]["recorded"]
    columns = {
        "environment": lambda item: item[0],
        "recorded": lambda item: str(recorded.get(item[0])),
        "present": lambda item: f"{item[1]}{'' if recorded.get(item[0]) == item[1] else '  (differs)'}",
    }
    yield rows_table(result["environment"]["present"].items(), columns)


def _describe_replay(replay: dict[str, Any]) -> str:
    equal = f"{replay['compared']:,} of {count_noun(replay['stored'], 'row')} equal"
    problem = replay["problem"] or f"the document was changed: {'; '.join(replay['document'] or ())}"
    if not replay["playable"]:
        return f"cannot be replayed: {problem}; the lines around this one say what was checked"
    return f"same: {equal}" if replay["ok"] else f"DIFFERS: {problem} ({equal})"


async def why(
    fill: Annotated[
        str,
        typer.Argument(
            metavar="FILL",
            help="Fill id, amendment id of a stop move, or id of a guard's verdict; or a unique start.",
        ),
    ],
    run: options.RunOption = LATEST,
    db: options.Db = None,
    json: options.Json = False,
) -> None:
    """Print the chain from a fill or a stop move back to bar, events, findings, verdict and playbook."""
    async with open_for_run(db, run, guards=True) as (store, record):
        root = await read_sparsely(
            lambda sought: store.journal.rows(record.run_id, sought=sought),
            lambda index: trace_named(index, fill),
        )
        if isinstance(root, list) or not root.is_whole:  # what is missing may be damaged: read every row
            index = await JournalIndex.read(told_rows(store.journal.rows(record.run_id), record.events))
            root = trace_named(index, fill)
            if not isinstance(root, list) and await store.retention.checkpoint(record.run_id) is not None:
                root = mark_pruned(root)
    if isinstance(root, list):
        raise _no_fill(root, fill, record.run_id)
    print_document(asdict(root), json, lambda _: _describe_node(root))


def _no_fill(found: list[Event], fill: str, run_id: str) -> ConfigError:
    kinds = " ".join(f"--kind {kind}" for kind in (*FILL_KINDS, "stop_tightened", "guard_verdict"))
    listing = f"list them with `thinktwice journal {run_id} {kinds}`"
    if not found:
        return ConfigError(f"no fill {fill!r} and no amendment of a stop in run {run_id}: {listing}")
    some = ", ".join(event.own_id or event.payload["amendment_id"] for event in found[:SHOWN_FILLS])
    return ConfigError(f"fill {fill!r} is not unique in run {run_id} ({some}, ...): {listing}")


def _describe_node(node: LineageNode, depth: int = 0) -> Iterator[str]:
    space = "    " * depth
    is_row = node.seq is not None and node.known_at is not None
    where = f"row {node.seq}, known {shown_time(node.known_at or 0)}" if is_row else ""
    lost = "" if node.found else "pruned" if node.pruned else "not found in the journal"
    yield space + "  ".join(filter(None, (node.title, (node.id or "")[:16], node.symbol, where, lost)))
    for name, value in node.facts.items():
        if value not in (None, [], {}, ""):
            text = fact_text(name, value)
            first, *more = text.splitlines() if name == "narrative" else [text]
            yield f"{space}  {name} {first}"
            yield from (f"{space}    {line}" for line in more)
    if node.comment:
        yield f"{space}  {comment_text(node.comment)}"
    for child in node.children:
        yield from _describe_node(child, depth + 1)
