"""The verdict of `thinktwice check` as a person reads it, from its JSON document and nothing else."""

from typing import Any

from rich.text import Text

from services.model_calls.quoting import visible
from worker.cli.console import stdout_console
from worker.pages.figures import counts, milliseconds

Document = dict[str, Any]
STYLES = {"pass": "bold green", "revise": "bold yellow", "block": "bold red", "error": "bold red"}
WISHES = {"at_most": "at most", "at_least": "at least", "equals": "exactly"}


def render(document: Document) -> None:
    """Print the verdict first, then findings by check, then how it came about."""
    console = stdout_console()
    head = Text(document["status"], style=STYLES[document["status"]])
    head.append(f"   {document['playbook_id']} {document['direction']} on {document['symbol']}", "default")
    lines = [head, *_findings(document["findings"]), *_facts(document), *_how(document)]
    for line in lines:
        plain = visible(line.plain)  # words of the request stand in findings
        console.print(line if plain == line.plain else Text(plain), soft_wrap=True)


def _findings(by_check: dict[str, list[Document]]) -> list[Text]:
    lines = []
    for check, found in by_check.items():
        if found:
            lines += [Text(""), Text(check, style="bold")]
        for finding in found:
            line = Text(f"  {finding['severity']:<8}", style="dim").append(finding["code"], "default bold")
            lines += [line, Text(f"          {finding['message']}")]
            if finding["evidence"]:
                lines.append(Text(f"          evidence: {', '.join(finding['evidence'])}", style="dim"))
            if finding["remedy"] is not None:
                lines.append(Text(f"          would satisfy it: {_wish(finding['remedy'])}"))
    return lines


def _wish(remedy: Document) -> str:
    return f"{remedy['field']} {WISHES[remedy['op']]} {remedy['value']!r}"


def _facts(document: Document) -> list[Text]:
    lines = [Text(f"deferred to the slow loop: {need}") for need in document["deferred"]]
    if document["error"] is not None:
        lines.append(Text(f"{document['error']['type']}: {document['error']['message']}"))
    return [Text(""), *lines] if lines else []


def _how(document: Document) -> list[Text]:
    ran = document["checks_run"]
    lines = [Text(""), Text(f"checks run   {', '.join(ran) or 'none that finished'}")]
    if document["model"] is not None:
        asked = f"model        {counts(document['model']['outcomes'])}   {document['model']['usd']:.6f} USD"
        lines.append(Text(asked))
    if document["tier"] is not None:
        late = "   over its budget" if document["over_budget"] else ""
        why = f" ({document['skip_reason']})" if document["skip_reason"] else ""
        outcome = f"{document['tier']} tier, {document['outcome']}{why}"
        lines.append(Text(f"reached      {outcome} in {milliseconds(document['latency_ms'])}{late}"))
    return lines
