"""`thinktwice gate`: the slow loop's gate on any table of resolved trades."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from services.high_level.leanings import nearest_claim
from services.high_level.measured_rates import OPINION_TEXT, proven_text
from services.high_level.report_lines import interval_text
from services.model_calls.quoting import count_noun
from worker.cli.options import ConfigArgument, JsonOption, argument, option
from worker.cli.printing import print_document
from worker.pages.figures import DASH, shown_time
from worker.pages.text_parts import Part, rows_table
from worker.runs import run_inputs
from worker.runs.progress import step, watch_rows
from worker.settings import load_settings
from worker.studies.trade_forms import FORMS

if TYPE_CHECKING:
    from services.high_level.table_gate import GradedTable

COLUMNS = {
    "cluster": lambda row: "  " * (len(_parts(row)) - 1) + _parts(row)[-1],  # below those that it belongs to
    "n": "n",
    "blocks": "blocks",
    "mean R": lambda row: DASH if row["mean"] is None else f"{row['mean']:+.2f}",
    "against": lambda row: f"{row['reference']:+.2f}",
    "95 % at every look": lambda row: interval_text(row["lower"], row["upper"], row["interval_kind"]),
    "E": lambda row: None if row["leaning"] is None else f"{row['leaning']} {row['e_value']:.3g}",
    "shrunken (90 %)": lambda row: (
        DASH
        if row["shrunken_mean"] is None
        else f"{row['shrunken_mean']:+.2f} {interval_text(row['shrunken_lower'], row['shrunken_upper'])}"
    ),
    "detectable": lambda row: (
        DASH if row["smallest_detectable"] is None else f"{row['smallest_detectable']:.2f}"
    ),
    "grade": "grade",
    "may lead to": "strongest_action",
}


def gate(
    file: Annotated[
        Path,
        argument(
            metavar="FILE",
            help="CSV or Parquet: entry_time, exit_time and r, or the trades of a program that --read knows.",
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
    print_document(document, json, lambda shown: _describe(graded, shown))


def _describe(graded: "GradedTable", document: dict[str, Any]) -> Iterator[Part]:
    from services.high_level.drift import decay_text

    yield from _head(graded, document)
    rows = [
        (item, row)
        for item, row in zip(graded.clusters, document["clusters"], strict=True)
        if row["timeframe"] is None or item.cluster.tested_as.count("|") == 2
    ]
    yield rows_table([row for _, row in rows], COLUMNS)
    if len(rows) < len(document["clusters"]):
        yield "A cell with one timeframe is shown once; --json has it on both levels."
    yield ""
    yield from document["limits"]
    for item, row in rows:
        first = item.first_significant_at
        when = "" if first is None or len(graded.looks) == 1 else f"; first at {shown_time(first)}"
        yield f"{' '.join(_parts(row))}: {row['reason']}{_torn_means(row)}{when}"
    near = [(" ".join(_parts(row)), row["years_needed"], row["to_prove"]) for _, row in rows]
    if found := nearest_claim(near):
        yield f"nearest claim: {found}"
    for _, row in rows:
        if row["second_opinion"] is not None:
            yield _opinion(row)
    for alarm in filter(None, (item.alarm for item, _ in rows)):
        yield f"{decay_text(alarm)}; since {shown_time(alarm.known_at)}"
    family = document["family"]
    yield f"e-BH selects {', '.join(family['selected']) or 'nothing'}"
    if family["selected"]:
        yield proven_text(family["size"])
    if pair := document.get("against"):
        yield _pair(pair)


def _pair(pair: dict[str, Any]) -> str:
    edges = f"{pair['mean']:+.3f} a {pair['unit']} [{pair['lower']:+.3f}, {pair['upper']:+.3f}]"
    trades = " and ".join(f"{count:,}" for count in pair["trades"])
    left = f", {count_noun(pair['outside'], 'trade')} outside the common time" if pair["outside"] else ""
    why = f" ({pair['reason']})" if pair["reason"] else ""
    answer = f"against the other log: {pair['answer']}{why}, {edges}"
    return f"{answer}, p {pair['p_value']:.3g}; {trades} trades{left}"


def _head(graded: "GradedTable", document: dict[str, Any]) -> Iterator[str]:
    family = document["family"]
    looks = f"{family['looks']} looks" if family["looks"] > 1 else "one look"
    size = count_noun(family["size"], "hypothesis", "hypotheses")
    tested = f"family {family['id'][:12]} of {size}, q {family['q']:g}"
    yield f"{looks}, the last at {shown_time(graded.looks[-1])}; {tested}, mode {family['mode']}"
    if left_out := document.get("left_out", {}).get("no_learn"):
        verb = "is" if left_out == 1 else "are"
        yield f"{count_noun(left_out, 'trade')} of no-learn zones {verb} left out"
    if positions := _positions(document["positions"]):
        yield positions
    limited = document.get("entries_per_block")
    if limited is not None and limited["beyond"]:
        yield _beyond(limited)


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


def _opinion(row: dict[str, Any]) -> str:
    """What the yearly looks claim of a playbook, with the rates at which they are wrong."""
    found = row["second_opinion"]
    advice = "risk less, or try it on paper" if found["claim"] == "losing" else "no reason for more risk"
    return (
        f"second opinion: {row['playbook']} {found['claim']}, look {found['look']} of {found['looks']}, t "
        f"{found['t']:.2f} beyond {found['bound']:.2f} ({OPINION_TEXT}); not proven: {advice}"
    )


def _parts(row: dict[str, Any]) -> list[str]:
    """Playbook, regime and timeframe of a cluster, as far as it has them."""
    return [row[name] for name in ("playbook", "regime", "timeframe") if row[name] is not None]
