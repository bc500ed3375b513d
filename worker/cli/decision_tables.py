"""The comparison of two prompts of the strategist as a person reads it, from its JSON document alone."""

from typing import Any

from worker.cli.model_tables import print_rows, print_table
from worker.figures import DASH, counts, shown_time

Document = dict[str, Any]


def render_decisions(document: Document) -> None:
    """What moved in all, the moves, the test of each decision, then snapshot by snapshot."""
    prompt, decisions, test = document["prompt"], document["decisions"], document["test"]
    p_value = test["p_value"]
    rows = [
        ("prompt", f"{prompt['first'][:16]} -> {prompt['second'][:16]}"),
        ("model", document["model"]),
        ("first prompt", counts(decisions["first"])),
        ("second prompt", counts(decisions["second"])),
        ("compared", f"{document['compared']:,} of {document['questions']:,} snapshots"),
        ("unchanged", f"{document['unchanged']:,} ({document['other_plan']:,} with another plan)"),
        ("moved", f"{document['moved']:,}"),
        ("paired test", DASH if p_value is None else f"p = {p_value:.3g} ({test['name']})"),
        ("cost", f"{document['tokens']:,} tokens   {document['usd']:.4f} USD"),
    ]
    if document["left_out"]:
        rows.append(("left out", f"{counts(document['left_out'])}: no model was asked there"))
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


def _p(value: float) -> str:
    return f"{value:.3g}"
