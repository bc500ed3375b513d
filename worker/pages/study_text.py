"""What a person reads of a study's document, in a terminal and in a notebook alike."""

from collections.abc import Iterator
from typing import Any

from schemas.trials import COUNTS, TrialLedger
from services.model_calls.quoting import count_noun
from worker.pages.figures import DASH, counts, few_symbols, milliseconds, percent
from worker.pages.text_parts import Part, rows_table

Document = dict[str, Any]
WISHES = {"at_most": "at most", "at_least": "at least", "equals": "exactly"}
SHOWN_CODES = 2  # of a kind: the most frequent
FAULT_COLUMNS = {
    "kind": "name",
    "planted": "planted",
    "stopped": lambda kind: kind["stopped"] if kind["planted"] else None,
    "no effect": lambda kind: kind["no_effect"] if kind["planted"] else None,
    "passed": lambda kind: kind["passed"] if kind["planted"] else None,
    "95 %": lambda kind: _range(kind["interval"]),
    "by code": lambda kind: _codes(kind),
}


def check_parts(document: Document) -> Iterator[Part]:
    """The verdict on a plan, its findings, and what it took."""
    plan = f"{document['playbook_id']} {document['direction']} on {document['symbol']}"
    yield f"{document['status']}   {plan}"
    for check, found in document["findings"].items():
        if found:
            yield from ("", check)
        for finding in found:
            yield f"  {finding['severity']:<8}{finding['code']}"
            yield f"          {finding['message']}"
            if finding["evidence"]:
                yield f"          evidence: {', '.join(finding['evidence'])}"
            if (remedy := finding["remedy"]) is not None:
                wish = f"{remedy['field']} {WISHES[remedy['op']]} {remedy['value']!r}"
                yield f"          would satisfy it: {wish}"
    yield ""
    yield from (("deferred", f"to the slow loop: {need}") for need in document["deferred"])
    if document["error"] is not None:
        yield "error", f"{document['error']['type']}: {document['error']['message']}"
    yield "checks", ", ".join(document["checks_run"]) or "none that finished"
    if document["model"] is not None:
        yield "model", f"{counts(document['model']['outcomes'])}   {document['model']['usd']:.6f} USD"
    if document["tier"] is not None:
        late = "   over its budget" if document["over_budget"] else ""
        why = f" ({document['skip_reason']})" if document["skip_reason"] else ""
        outcome = f"{document['tier']} tier, {document['outcome']}{why}"
        yield "reached", f"{outcome} in {milliseconds(document['latency_ms'])}{late}"


def faults_parts(document: Document) -> Iterator[Part]:
    """What was stopped of each kind of fault, and what was refused of right plans."""
    right, request = document["right"], document["asked"]
    yield rows_table(document["kinds"], FAULT_COLUMNS)
    yield ""
    by = f" by {counts(right['codes'])}" if right["codes"] else ""
    proposed = f", proposed at {right['plans']} of {request} questions" if document["strategist"] else ""
    refused = f"{right['refused']} of {right['plans']} refused{by} (95 %: {_range(right['interval'])})"
    yield f"right plans, as they are: {refused}{proposed}"
    if (model := document["model"]) is not None:
        yield f"models: {counts(model['outcomes'])}   {model['usd']:.6f} USD"
    for kind in document["kinds"]:
        yield from (f"passed, {kind['name']}: {text}" for text in kind["passed_texts"][:1])


def _codes(kind: Document) -> str:
    if not kind["planted"]:
        return f"does not apply: {', '.join(kind['why_not']) or 'no right plan'}"
    codes = counts(dict(list(kind["codes"].items())[:SHOWN_CODES]))
    return f"{codes} BROKEN {counts(kind['why_broken'])}" if kind["broken"] else codes


def _range(interval: tuple[float, float] | None) -> str:
    return DASH if interval is None else " to ".join(percent(bound) for bound in interval)


def trials_parts(document: Document) -> Iterator[Part]:
    """What was tried on which bars, and where it was asked for, what the best of it is worth."""
    columns = {
        "bars": _range_text,
        "runs": lambda on: len(on["runs"]),
        **{name: name for name in COUNTS},
        "the next run starts with": lambda on: (
            f"{count_noun(on['next']['configurations'], 'configuration')}, {TrialLedger(**on['next']).sums}"
        ),
    }
    yield rows_table(document["ranges"], columns)
    if "selection" in document:
        yield from _selection_parts(document["selection"])


def _range_text(on: dict[str, Any]) -> str:
    return f"{on['timeframe']} {few_symbols(on['symbols'])} {on['start'][:10]} to {on['end'][:10]}"


def _selection_parts(selection: dict[str, Any]) -> Iterator[Part]:
    columns = {
        "bars": _range_text,
        "compared": "configurations",
        "tried": "tried",
        "best": "best",
        "Sharpe": lambda on: f"{on['sharpe']:.2f}",
        "deflated": lambda on: percent(on["deflated_sharpe"]),
        "PBO": lambda on: percent(on["pbo"]),
        "SPA p": lambda on: f"{on['superior_p']:.3f}",
        "StepM": lambda on: " ".join(on["superior"]) or "none",
    }
    yield ""
    yield rows_table(selection["ranges"], columns)
    yield (
        "deflated: probability that the best is worth more than luck gives the best of what was tried; PBO: "
        "that the best of one half of the bars ranks below the median in the other; SPA p: of no run "
        "earning more than cash; StepM: those that do."
    )
    for on in selection["ranges"]:
        yield from (f"{_range_text(on)}: {limit}" for limit in on["limits"])
    yield from (f"{row['run']} is left out: {row['reason']}" for row in selection["left_out"])
