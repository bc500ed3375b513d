"""Decisions of a strategist that was asked again as a person reads them, from JSON documents alone."""

from typing import Any

from worker.cli.model_tables import print_rows, print_table
from worker.pages.figures import DASH, counts, shown_time

Document = dict[str, Any]


def render_comparison(document: Document) -> None:
    """What moved in all, the moves, the test of each decision, then snapshot by snapshot."""
    prompt, decisions, test = document["prompt"], document["decisions"], document["test"]
    models = list(dict.fromkeys(document["model"].values()))
    noun = "prompt" if len(models) == 1 else "model"
    p_value = test["p_value"]
    rows = [
        ("prompt", f"{prompt['first'][:16]} -> {prompt['second'][:16]}"),
        ("model", " -> ".join(models)),
        (f"first {noun}", counts(decisions["first"])),
        (f"second {noun}", counts(decisions["second"])),
        ("compared", f"{document['compared']:,} of {document['questions']:,} snapshots"),
        ("unchanged", f"{document['unchanged']:,} ({document['other_plan']:,} with another plan)"),
        ("moved", f"{document['moved']:,}"),
        ("paired test", DASH if p_value is None else f"p = {p_value:.3g} ({test['name']})"),
        ("cost", f"{document['tokens']:,} tokens   {document['usd']:.4f} USD"),
    ]
    if document["left_out"]:
        rows.append(("left out", f"{counts(document['left_out'])}: no model was asked there"))
    if document["without_background"]:
        bare = f"{document['without_background']:,} snapshots: nothing was gathered beside them"
        rows.append(("no background", f"{bare}, as in a run by rules"))
    print_rows(f"decisions at the snapshots of {document['run_id']}", rows)
    moves = [[one["from"], one["to"], str(one["count"])] for one in document["moves"]]
    print_table(("from", "to", "snapshots"), moves)
    tested = [
        [one["decision"], str(one["left"]), str(one["entered"]), _p(one["p_value"]), _p(one["p_adjusted"])]
        for one in test["by_decision"]
    ]
    print_table(("decision", "left it", "entered it", "p", "p adjusted"), tested)
    lines = [
        [shown_time(one["known_at"]), one["symbol"], one["state"], one["from"], one["to"]]
        for one in document["changed"]
    ]
    print_table(("bar", "symbol", "state", "from", "to"), lines)


def render_spread(document: Document) -> None:
    """How often the decision was the usual one, then the snapshots that vary, the most uncertain first."""
    usual = document["usual_share"]
    rows = [
        ("prompt", document["prompt_hash"][:16]),
        ("model", document["model"]),
        ("asked", f"{document['questions']:,} snapshots, {document['samples']:,} times each"),
        ("answered", f"{document['answered']:,}"),
        ("usual decision", DASH if usual is None else f"{usual:.1%} of the answers"),
        ("stable", f"{document['stable']:,} snapshots with one decision only"),
        ("decisions", counts(document["decisions"])),
        ("cost", f"{document['tokens']:,} tokens   {document['usd']:.4f} USD"),
    ]
    if document["failed"]:
        rows.append(("no answer", counts(document["failed"])))
    if document["left_out"]:
        rows.append(("left out", f"{counts(document['left_out'])}: no model was asked there"))
    print_rows(f"decisions at the snapshots of {document['run_id']}, asked again", rows)
    lines = [
        [shown_time(one["known_at"]), one["symbol"], one["state"], counts(one["decisions"])]
        for one in document["varying"]
    ]
    print_table(("bar", "symbol", "state", "decisions"), lines)


def _p(value: float) -> str:
    return f"{value:.3g}"
