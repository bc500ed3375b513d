"""What is published of models: until when one may know what happened, and what it costs, with its source.

A backtest over bars that a model may have read about measures its memory as much as its judgement. What no
source tells is unknown: an unknown cutoff counts as contaminated, and an unknown price is reported.

APIs answer a name of a model with the version that it stands for (`answers_for`).
"""

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

TABLE = Path(__file__).with_name("model_table.toml")
# What an id may have after its name: the day of its snapshot, as the providers write it.
DATED = re.compile(r"[-@](\d{8}|\d{4}-\d{2}-\d{2}|\d{4}|\d{2}-\d{2})")
LATEST = re.compile(r"[-:]latest")
RESOURCE = "models/"  # before the names that Gemini answers in


def is_version_of(model: str, name: str) -> bool:
    """Whether a model's id is this name, with or without the date of a snapshot."""
    rest = model.removeprefix(name)
    return model.startswith(name) and (not rest or DATED.fullmatch(rest) is not None)


def answers_for(answered: str, asked: str) -> bool:
    """Whether an answer of `answered` is one of the model asked for.

    A gateway may leave out the vendor (`vendor/x` for `x`), the variant that was routed (`x:free`), and puts
    the number of a version before or behind the family (`claude-4.5-sonnet`).
    """
    given, wanted = answered.removeprefix(RESOURCE), asked.removeprefix(RESOURCE)
    names = {wanted, LATEST.sub("", wanted)}
    if "/" in wanted:
        vendor, _, name = wanted.partition(":")[0].rpartition("/")
        parts = name.split("-")
        names |= {f"{vendor}/{name}", name}
        bare = re.sub(rf"{DATED.pattern}$", "", given.rpartition("/")[2])
        if sorted(bare.split("-")) == sorted(parts) and given.rpartition("/")[0] in ("", vendor):
            return True
    return LATEST.sub("", given) in names or any(is_version_of(given, name) for name in names)


@dataclass(frozen=True)
class Cutoff:
    """One model's cutoff; `date` is the last day it may know, None when no source tells."""

    model: str
    date: date | None
    kind: str
    source: str


@cache
def published_models() -> tuple[dict[str, Any], ...]:
    """The rows of the table, in its order."""
    return tuple(tomllib.loads(TABLE.read_text("utf-8"))["model"])


def published_row(model: str) -> dict[str, Any] | None:
    """The row of a model by its id, with or without the date of its snapshot."""
    return next((row for row in published_models() if is_version_of(model, row["model"])), None)


def cutoff_of(model: str) -> Cutoff:
    """The published cutoff of a model; a gateway names its vendor before it."""
    row = published_row(model.rpartition("/")[2].partition(":")[0])
    if row is None:
        return Cutoff(model, None, "unknown", "not in the table of published models")
    return Cutoff(model, row["cutoff"], row["kind"], row["source"])


def cutoffs(models: Sequence[str], configured: str | None) -> tuple[Cutoff, ...]:
    """The cutoff of each model; a configured ISO date holds for all of them."""
    if configured is None:
        return tuple(cutoff_of(model) for model in models)
    day = date.fromisoformat(configured)
    return tuple(Cutoff(model, day, "configured", "llm.knowledge_cutoff") for model in models)
