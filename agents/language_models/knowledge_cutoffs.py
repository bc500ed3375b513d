"""Until when a language model may know what happened: from a table of published dates, or from the settings.

A backtest over bars that a model may have read about measures its memory as much as its judgement. What no
source tells is unknown, and unknown counts as contaminated. Read by the result of a run; no decision is.

APIs answer an alias of a model with the dated version that it stands for (`answers_for`).
"""

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path

TABLE = Path(__file__).with_name("knowledge_cutoffs.toml")
# What an id may have after its name: the day of its snapshot, as the providers write it.
DATED = re.compile(r"[-@](\d{8}|\d{4}-\d{2}-\d{2}|\d{4})")
ALIAS = "-latest"


def is_version_of(model: str, name: str) -> bool:
    """Whether a model's id is this name, with or without the date of a snapshot."""
    rest = model.removeprefix(name)
    return model.startswith(name) and (not rest or DATED.fullmatch(rest) is not None)


def answers_for(answered: str, asked: str) -> bool:
    """Whether an answer of `answered` is one of the model asked for."""
    return is_version_of(answered, asked.removesuffix(ALIAS)) or answered == asked


@dataclass(frozen=True)
class Cutoff:
    """One model's cutoff; `date` is the last day it may know, None when no source tells."""

    model: str
    date: date | None
    kind: str
    source: str


@cache
def published_cutoffs() -> tuple[Cutoff, ...]:
    """The table, in its order."""
    rows = tomllib.loads(TABLE.read_text("utf-8"))["cutoff"]
    return tuple(Cutoff(row["model"], row["date"], row["kind"], row["source"]) for row in rows)


def cutoff_of(model: str) -> Cutoff:
    """The published cutoff of a model by its id, with or without the date of its snapshot."""
    for cutoff in published_cutoffs():
        if is_version_of(model, cutoff.model):
            return Cutoff(model, cutoff.date, cutoff.kind, cutoff.source)
    return Cutoff(model, None, "unknown", "not in the table of published cutoffs")


def cutoffs(models: Sequence[str], configured: str | None) -> tuple[Cutoff, ...]:
    """The cutoff of each model; a configured ISO date holds for all of them."""
    if configured is None:
        return tuple(cutoff_of(model) for model in models)
    day = date.fromisoformat(configured)
    return tuple(Cutoff(model, day, "configured", "llm.knowledge_cutoff") for model in models)
