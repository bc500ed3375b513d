"""`thinktwice why`: from a fill or a stop move back to everything that led to it."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from schemas.errors import ConfigError
from services.journal.index import FILL_KINDS, Event, JournalIndex
from services.journal.lineage import LineageNode, trace, trace_move, trace_order
from services.journal.sparse_index import read_sparsely
from services.model_calls.quoting import visible
from worker.cli.console import print_json, stdout_console
from worker.cli.options import LATEST, DbOption, JsonOption, RunOption, open_for_run
from worker.pages.figures import comment_text, fact_text, shown_time
from worker.runs.progress import told_rows

if TYPE_CHECKING:
    from rich.tree import Tree

SHOWN = 5


async def why(
    fill: Annotated[
        str,
        typer.Argument(
            metavar="FILL",
            help="Fill id, amendment id of a stop move, or id of a guard's verdict; or a unique start.",
        ),
    ],
    run: RunOption = LATEST,
    db: DbOption = None,
    json: JsonOption = False,
) -> None:
    """Print the chain from a fill or a stop move back to bar, events, findings, verdict and playbook."""
    async with open_for_run(db, run, guards=True) as (store, record):
        root = await read_sparsely(
            lambda sought: store.journal.rows(record.run_id, sought=sought),
            lambda index: _reasons(index, fill),
        )
        if (
            isinstance(root, list) or not root.is_whole
        ):  # what is missing may be damaged: every row is looked at
            index = await JournalIndex.read(told_rows(store.journal.rows(record.run_id), record.events))
            root = _reasons(index, fill)
    if isinstance(root, list):
        raise _no_fill(root, fill, record.run_id)
    if json:
        print_json(asdict(root))
        return
    from rich.tree import Tree

    tree = Tree(_label(root))
    _grow(tree, root)
    stdout_console().print(tree)


def _reasons(index: JournalIndex, fill: str) -> LineageNode | list[Event]:
    """The tree of the one that `fill` names; all that it may mean where that is not one."""
    found = [*index.fills(fill), *index.stop_moves(fill), *index.starting("guard_verdict", fill)]
    if len(found) != 1:
        return found
    if found[0].row.kind == "guard_verdict":
        return trace_order(index, found[0])
    return trace(index, found[0]) if found[0].row.kind in FILL_KINDS else trace_move(index, found[0])


def _no_fill(found: list[Event], fill: str, run_id: str) -> ConfigError:
    kinds = " ".join(f"--kind {kind}" for kind in (*FILL_KINDS, "stop_tightened", "guard_verdict"))
    listing = f"list them with `thinktwice journal {run_id} {kinds}`"
    if not found:
        return ConfigError(f"no fill {fill!r} and no amendment of a stop in run {run_id}: {listing}")
    some = ", ".join(event.own_id or event.payload["amendment_id"] for event in found[:SHOWN])
    return ConfigError(f"fill {fill!r} is not unique in run {run_id} ({some}, ...): {listing}")


def _grow(tree: "Tree", node: LineageNode) -> None:
    for child in node.children:
        _grow(tree.add(_label(child)), child)


def _label(node: LineageNode) -> Any:
    from rich.text import Text

    label = Text(visible(node.title), style="bold" if node.found else "bold red")
    key = node.id[:16] if node.id else ""
    where = (
        ""
        if node.seq is None or node.known_at is None
        else f"row {node.seq}, known {shown_time(node.known_at)}"
    )
    parts = [visible(part) for part in (key, node.symbol or "", where) if part]
    label.append("  " + "  ".join(parts), style="dim")
    if not node.found:
        label.append("  not found in the journal", style="red")
    for name, value in node.facts.items():
        if value not in (None, [], {}, ""):
            label.append(f"\n  {visible(name)} ", style="dim")
            label.append(visible(fact_text(name, value), lines=name == "narrative"), style="default")
    if node.comment:
        label.append(f"\n  {comment_text(node.comment)}", style="default")
    return label
