"""Until when a language model may know what happened: from a table of published dates, or from the settings.

A backtest over bars that a model may have read about measures its memory as much as its judgement. What no
source tells is unknown, and unknown counts as contaminated. Read by the result of a run; no decision is.
"""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path

from agents.language_models.model_names import is_version_of

TABLE = Path(__file__).with_name("knowledge_cutoffs.toml")


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
