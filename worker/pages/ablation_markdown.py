"""An ablation as a Markdown page: the answers first, then what they rest on."""

from collections.abc import Sequence
from typing import Any

from services.model_calls.quoting import counted, visible
from worker.pages.ablation_figures import (
    ARM_HEAD,
    PAPER_HEAD,
    arm_row,
    chance_line,
    exposure_line,
    how_told,
    paper_row,
    rates_told,
    worth_line,
)


def ablation_markdown(document: dict[str, Any]) -> str:
    """The page of one document of `thinktwice ablate`."""
    data = document["data"]
    lines = [
        "# Worth of each tier",
        "",
        f"{_text(', '.join(data['symbols']))}, {data['timeframe']}, {counted(data['bars'], 'bar')}.",
        how_told(document),
        "",
    ]
    for tier in document["tiers"]:
        told = [line for line in (worth_line(tier), chance_line(tier), exposure_line(tier)) if line]
        title = f"## {tier['tier'].capitalize()}: {tier['answer'] or tier['reason']}"
        lines += [title, "", *(f"- {_text(line)}" for line in told), ""]
    lines += ["## Arms", "", *_table(ARM_HEAD, [arm_row(arm) for arm in document["arms"]]), ""]
    lines += [f"- `{arm['arm']}`: {arm['meaning']}" for arm in document["arms"]] + [""]
    if document["random_veto"]["seeds"]:
        lines += [rates_told(document), ""]
    paper = [paper_row(row) for row in document["shadow_ledger"]]
    if paper:
        words = "What refused plans would have made, on paper and after costs. They belong to no account."
        lines += ["## Shadow ledger", "", words, "", *_table(PAPER_HEAD, paper)]
    return "\n".join(lines).rstrip() + "\n"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    table = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(_text(cell) for cell in row) + " |" for row in table]


def _text(words: str) -> str:
    """Names of symbols come from a foreign file: they stay text."""
    words = visible(words)
    for sign in "\\|`*<[":
        words = words.replace(sign, f"\\{sign}")
    return words
