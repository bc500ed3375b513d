"""What a person reads of graded trades, in a terminal and in a notebook alike."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from schemas.canonical import text_to_ns
from services.high_level.leanings import nearest_claim
from services.high_level.measured_rates import OPINION_TEXT, proven_text
from services.high_level.report_lines import decay_text, interval_text
from services.model_calls.quoting import count_noun
from worker.pages.figures import DASH, shown_time
from worker.pages.text_parts import Part, rows_table

Document = dict[str, Any]
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


def gate_parts(document: Document) -> Iterator[Part]:
    """Every cluster with its grade, what it rests on, and what is nearest to being proven."""
    yield from _head(document)
    several = Counter(_parts(row)[:2] for row in document["clusters"] if row["timeframe"] is not None)
    rows = [row for row in document["clusters"] if row["timeframe"] is None or several[_parts(row)[:2]] > 1]
    yield rows_table(rows, COLUMNS)
    if len(rows) < len(document["clusters"]):
        yield "A cell with one timeframe is shown once; --json has it on both levels."
    yield ""
    yield from document["limits"]
    for row in rows:
        first = row["first_significant_at"]
        when = "" if first is None or document["family"]["looks"] == 1 else f"; first at {_time(first)}"
        yield f"{' '.join(_parts(row))}: {row['reason']}{_torn_means(row)}{when}"
    near = [(" ".join(_parts(row)), row["years_needed"], row["to_prove"]) for row in rows]
    if found := nearest_claim(near):
        yield f"nearest claim: {found}"
    for row in rows:
        if row["second_opinion"] is not None:
            yield _opinion(row)
    for row in rows:
        if row["decay"] is not None and row["decay"]["alarmed_at"] is not None:
            decay = row["decay"]
            line = decay_text(row["playbook"], decay["highest"], decay["limit"])
            yield f"{line}; since {_time(decay['alarmed_at'])}"
    family = document["family"]
    yield f"e-BH selects {', '.join(family['selected']) or 'nothing'}"
    if family["selected"]:
        yield proven_text(family["size"])
    if pair := document.get("against"):
        yield _pair(pair)


def _time(text: str) -> str:
    return shown_time(text_to_ns(text))


def _pair(pair: Document) -> str:
    edges = f"{pair['mean']:+.3f} a {pair['unit']} [{pair['lower']:+.3f}, {pair['upper']:+.3f}]"
    trades = " and ".join(f"{count:,}" for count in pair["trades"])
    left = f", {count_noun(pair['outside'], 'trade')} outside the common time" if pair["outside"] else ""
    why = f" ({pair['reason']})" if pair["reason"] else ""
    answer = f"against the other log: {pair['answer']}{why}, {edges}"
    return f"{answer}, p {pair['p_value']:.3g}; {trades} trades{left}"


def _head(document: Document) -> Iterator[str]:
    family = document["family"]
    looks = f"{family['looks']} looks" if family["looks"] > 1 else "one look"
    size = count_noun(family["size"], "hypothesis", "hypotheses")
    tested = f"family {family['id'][:12]} of {size}, q {family['q']:g}"
    yield f"{looks}, the last at {_time(family['last_look'])}; {tested}, mode {family['mode']}"
    if left_out := document.get("left_out", {}).get("no_learn"):
        verb = "is" if left_out == 1 else "are"
        yield f"{count_noun(left_out, 'trade')} of no-learn zones {verb} left out"
    if positions := _positions(document["positions"]):
        yield positions
    limited = document.get("entries_per_block")
    if limited is not None and limited["beyond"]:
        yield _beyond(limited)


def _positions(held: Document) -> str:
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


def _beyond(limited: Document) -> str:
    blocks, holds = count_noun(limited["beyond"], "block"), "holds" if limited["beyond"] == 1 else "hold"
    most = count_noun(limited["most"], "entry", "entries")
    return (
        f"envelope.max_entries_per_block is {limited['limit']:,}, but {blocks} of this table {holds} more "
        f"({most} in the {limited['block']} of {limited['begins'][:10]}): the limit does not bound the "
        "stakes; raise it, or leave it out"
    )


def _torn_means(row: Document) -> str:
    """Why a cluster leans to nothing whose raw mean lies on the other side of the reference."""
    if row["mean"] is None or (row["mean"] - row["reference"]) * (row["mean_raw"] - row["reference"]) >= 0.0:
        return ""
    return f"; leans to nothing, raw mean {row['mean_raw']:+.3g}: outliers carry the mean"


def _opinion(row: Document) -> str:
    found = row["second_opinion"]
    advice = "risk less, or try it on paper" if found["claim"] == "losing" else "no reason for more risk"
    return (
        f"second opinion: {row['playbook']} {found['claim']}, look {found['look']} of {found['looks']}, t "
        f"{found['t']:.2f} beyond {found['bound']:.2f} ({OPINION_TEXT}); no proof by itself: {advice}"
    )


def _parts(row: Document) -> tuple[str, ...]:
    return tuple(row[name] for name in ("playbook", "regime", "timeframe") if row[name] is not None)
