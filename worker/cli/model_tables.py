"""Spread and comparison of models as a person reads them, from their JSON documents and nothing else."""

from collections.abc import Iterable, Sequence
from typing import Any

from worker.cli.console import stdout_console
from worker.pages.figures import DASH, counts, milliseconds, percent, shown_time
from worker.pages.tables import made_table, table_of

Document = dict[str, Any]
SHOWN = 20
P_VALUES = ("p_value", "p_adjusted")


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
            *_place(plan),
            plan["recorded"] or DASH,
            counts(plan["verdicts"]),
            counts(plan["refused"] | plan["failed"]),
            percent(plan["agreement"]),
        ]
        for plan in order
    ]
    print_table(("bar", "symbol", "playbook", "rules", "recorded", "again", "no verdict", "agreement"), lines)


def render_comparison(document: Document) -> None:
    """What moved in all, by transition, then plan by plan."""
    prompt, model = document["prompt"], document["model"]
    rows = [
        ("prompt", f"{prompt['recorded'][:16]} -> {prompt['asked'][:16]}"),
        ("model", f"{model['recorded']} -> {model['asked']}"),
        *((f"{name} prompt", counts(said)) for name, said in document.get("verdicts", {}).items()),
        ("answered", f"{document['answered']:,} of {document['questions']:,} questions"),
        ("unchanged", f"{document['unchanged']:,}"),
        ("stricter", f"{document['stricter']:,}"),
        ("milder", f"{document['milder']:,}"),
        ("sign test", _p_value(document["p_value"])),
        *_cost(document),
    ]
    print_rows(f"comparison with {document['run_id']}", rows)
    moves = [
        [transition["from"], transition["to"], str(transition["count"]), counts(transition["findings"])]
        for transition in document["transitions"]
    ]
    print_table(("from", "to", "plans", "with findings"), moves)
    lines = [
        [*_place(row), row["from"], row["to"], ", ".join(row["cited"]) or row["refused"] or DASH]
        for row in document["changed"]
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
    console = stdout_console()
    console.print(title, style="bold", soft_wrap=True)
    console.print(table_of(rows))


def print_table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
    """The first lines under their heads; nothing without one."""
    if not lines:
        return
    console = stdout_console()
    console.print()
    console.print(made_table(head, lines[:SHOWN], padding=(0, 2, 0, 0)))
    if len(lines) > SHOWN:
        console.print(f"and {len(lines) - SHOWN:,} more (--json shows all)")


def render_decision_comparison(document: Document) -> None:
    """What moved in all, the moves, the test of each decision, then snapshot by snapshot."""
    prompt, decisions, test = document["prompt"], document["decisions"], document["test"]
    models = list(dict.fromkeys(document["model"].values()))
    noun = "prompt" if len(models) == 1 else "model"
    rows = [
        ("prompt", f"{prompt['first'][:16]} -> {prompt['second'][:16]}"),
        ("model", " -> ".join(models)),
        (f"first {noun}", counts(decisions["first"])),
        (f"second {noun}", counts(decisions["second"])),
        ("compared", f"{document['compared']:,} of {document['questions']:,} {_tell_asked(document)}"),
        ("unchanged", f"{document['unchanged']:,} ({document['other_plan']:,} with another plan)"),
        ("moved", f"{document['moved']:,}"),
        ("paired test", _p_value(test["p_value"], test.get("name", ""))),
        ("cost", f"{document['tokens']:,} tokens   {document['usd']:.4f} USD"),
    ]
    if document["left_out"]:
        rows.append(("left out", f"{counts(document['left_out'])}: no model was asked there"))
    if document["without_background"]:
        bare = f"{document['without_background']:,} snapshots: nothing was gathered beside them"
        rows.append(("no background", f"{bare}, as in a run by rules"))
    if "expected" in document:
        expected = document["expected"]
        moved = _p_value(expected["p_value"], "sign test")
        rows.append(("as expected", f"{expected['gained']:,} more, {expected['lost']:,} fewer   {moved}"))
    print_rows(_title(document), rows)
    _print_planned(document, (f"first {noun}", f"second {noun}"))
    moves = [[move["from"], move["to"], str(move["count"])] for move in document["moves"]]
    print_table(("from", "to", _tell_asked(document)), moves)
    tested = [
        [row["decision"], *map(str, (row["left"], row["entered"])), *(f"{row[p]:.3g}" for p in P_VALUES)]
        for row in test["by_decision"]
    ]
    print_table(("decision", "left it", "entered it", "p", "p adjusted"), tested)
    lines = [[*_where(row), row["from"], row["to"]] for row in document["changed"]]
    print_table((*_where_heads(document), "from", "to"), lines)


def render_decision_spread(document: Document) -> None:
    """How often the decision was the usual one, then the snapshots that vary, the most uncertain first."""
    usual = document["usual_share"]
    rows = [
        ("prompt", document["prompt_hash"][:16]),
        ("model", document["model"]),
        ("asked", f"{document['questions']:,} {_tell_asked(document)}, {document['samples']:,} times each"),
        ("answered", f"{document['answered']:,}"),
        ("usual decision", DASH if usual is None else f"{usual:.1%} of the answers"),
        ("stable", f"{document['stable']:,} {_tell_asked(document)} with one decision only"),
        ("decisions", counts(document["decisions"])),
        ("cost", f"{document['tokens']:,} tokens   {document['usd']:.4f} USD"),
    ]
    if document["failed"]:
        rows.append(("no answer", counts(document["failed"])))
    if document["left_out"]:
        rows.append(("left out", f"{counts(document['left_out'])}: no model was asked there"))
    print_rows(f"{_title(document)}, asked again", rows)
    _print_planned(document, ("planner",))
    lines = [[*_where(row), counts(row["decisions"])] for row in document["varying"]]
    print_table((*_where_heads(document), "decisions"), lines)


def _tell_asked(document: Document) -> str:
    return "questions" if "planned" in document else "snapshots"


def _title(document: Document) -> str:
    about = "plans for questions about" if "planned" in document else "decisions at the snapshots of"
    return f"{about} {document['run_id']}"


def _where(row: Document) -> list[str]:
    if "question" in row:
        return [row["question"]]
    return [shown_time(row["known_at"]), row["symbol"], row["state"]]


def _where_heads(document: Document) -> tuple[str, ...]:
    return ("question",) if "planned" in document else ("bar", "symbol", "state")


def _print_planned(document: Document, names: Sequence[str]) -> None:
    """What the plans of each way of asking came to; nothing where no planner was asked."""
    lines = []
    for name, told in zip(names, document.get("planned", ()), strict=False):
        of_all = f"of {told['questions']:,}"
        lines.append(
            [
                name,
                f"{told['readable']:,} of {told['plans']:,}",
                f"{told['asked_back']:,} {of_all}",
                f"{told['refined']:,} {of_all}",
                f"{told['refined_complete']:,} of {told['refined']:,}",
                _figure(told["calls_first_plan"]),
                _figure(told["calls"]),
                f"{told['as_expected']:,} of {told['labelled']:,}",
            ]
        )
    heads = ("asked", "plans read", "asked back", "refined", "then complete", "calls at first", "calls")
    print_table((*heads, "as expected"), lines)


def _figure(value: float | None) -> str:
    return DASH if value is None else f"{value:.2f}"


def _p_value(value: float | None, name: str = "") -> str:
    return DASH if value is None else f"p = {value:.3g}" + (f" ({name})" if name else "")
