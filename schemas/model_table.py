"""What is published of models: until when one may know what happened, and what it costs, with its source.

A backtest over bars that a model may have read about measures its memory as much as its judgement. What no
source tells is unknown: an unknown cutoff counts as contaminated, and an unknown price is reported.

APIs answer a name of a model with the version that it stands for (`answers_for`).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple

# What an id may have after its name: the day of its snapshot, as the providers write it.
DATED = re.compile(r"[-@](\d{8}|\d{4}-\d{2}-\d{2}|\d{4}|\d{2}-\d{2})")
LATEST = re.compile(r"[-:]latest")
RESOURCE = "models/"  # before the names that Gemini answers in


def is_version_of(model: str, name: str) -> bool:
    """Whether a model's id is this name, with or without the date of a snapshot."""
    rest = model.removeprefix(name)
    return model.startswith(name) and (not rest or DATED.fullmatch(rest) is not None)


def answers_for(answered: str, question: str) -> bool:
    """Whether an answer of `answered` is one of the model asked for.

    A gateway may leave out the vendor (`vendor/x` for `x`), the variant that was routed (`x:free`), and puts
    the number of a version before or behind the family (`claude-4.5-sonnet`), never its own parts about.
    """
    given, wanted = answered.removeprefix(RESOURCE), question.removeprefix(RESOURCE)
    names = {wanted, LATEST.sub("", wanted)}
    if "/" in wanted:
        vendor, _, name = wanted.partition(":")[0].rpartition("/")
        names |= {f"{vendor}/{name}", name}
        bare = re.sub(rf"{DATED.pattern}$", "", given.rpartition("/")[2])
        if _parts(bare) == _parts(name) and given.rpartition("/")[0] in ("", vendor):
            return True
    return LATEST.sub("", given) in names or any(is_version_of(given, name) for name in names)


def _parts(name: str) -> tuple[list[str], list[str]]:
    """The words of a name and its numbers, each in their order."""
    parts = name.split("-")
    return [part for part in parts if not part[:1].isdigit()], [part for part in parts if part[:1].isdigit()]


class PublishedModel(NamedTuple):
    """What the maker of a model said of it on the day of `read`.

    Attributes:
        model: an id, or an id without its date; never a family, whose later models know more.
        cutoff: last day that it may know; a month counts to its last day.
        kind: which of two dates that is: the end of what it was trained on where that is published, else the
            date to which its knowledge is called reliable; training may hold some later text.
        source, read: where the dates stand, and when that was read.
        usd: prices of a million tokens by the fields of `ModelPrice`, of prompts below the length from which
            some models charge more; empty where none was read.
    """

    model: str
    cutoff: date
    kind: str
    source: str
    read: date
    usd: Mapping[str, float] = {}


TRAINED, RELIABLE = "training data", "reliable knowledge"
DOCS, READ = "platform.claude.com/docs", date(2026, 11, 22)
PUBLISHED = (
    PublishedModel(
        "claude-opus-5-5", date(2026, 6, 30), RELIABLE,
        f"{DOCS}, Claude Opus 5.5, overview: knowledge cutoff Jun 2026", READ,
        {"input_usd": 4.0, "output_usd": 20.0, "cache_write_usd": 5.0, "cache_read_usd": 0.2},
    ),
    PublishedModel(
        "claude-sonnet-5-5", date(2026, 6, 30), RELIABLE,
        f"{DOCS}, Claude Haiku 5.5, overview, comparison: knowledge cutoff Jun 2026", READ,
    ),
    PublishedModel(
        "claude-haiku-5-5", date(2026, 6, 30), RELIABLE,
        f"{DOCS}, Claude Haiku 5.5, overview: knowledge cutoff Jun 2026", READ,
        {"input_usd": 0.1, "output_usd": 0.5, "cache_write_usd": 0.125},
    ),
    PublishedModel(
        "claude-fable-5-1", date(2026, 6, 30), RELIABLE,
        f"{DOCS}, Claude Haiku 5.5, overview, comparison: knowledge cutoff Jun 2026", READ,
    ),
    PublishedModel(
        "claude-opus-5", date(2026, 5, 31), TRAINED,
        f"{DOCS}, Claude Opus 5, overview: training data cutoff May 2026", READ,
    ),
    PublishedModel(
        "claude-sonnet-5", date(2026, 1, 31), RELIABLE,
        f"{DOCS}, Claude Opus 5, overview, comparison: knowledge cutoff Jan 2026", READ,
    ),
    PublishedModel(
        "claude-haiku-4-5", date(2025, 7, 31), TRAINED,
        f"{DOCS}, models overview: training data cutoff Jul 2025, reliable knowledge Feb 2025", READ,
    ),
    PublishedModel(
        "gpt-6.2-sol", date(2026, 6, 1), RELIABLE,
        "developers.openai.com/api/docs/models/gpt-6.2-sol: Jun 01, 2026 knowledge cutoff",
        date(2026, 11, 27),
        {"input_usd": 2.0, "output_usd": 10.0, "cache_write_usd": 2.5, "cache_read_usd": 0.1},
    ),
)  # fmt: skip


def published_row(model: str) -> PublishedModel | None:
    """The row of a model by its id, with or without the date of its snapshot."""
    return next((row for row in PUBLISHED if is_version_of(model, row.model)), None)


@dataclass(frozen=True)
class Cutoff:
    """One model's cutoff; `date` is the last day it may know, None when no source tells."""

    model: str
    date: date | None
    kind: str
    source: str


def cutoff_of(model: str) -> Cutoff:
    """The published cutoff of a model; a gateway names its vendor before it."""
    row = published_row(model.rpartition("/")[2].partition(":")[0])
    if row is None:
        return Cutoff(model, None, "unknown", "not in the table of published models")
    return Cutoff(model, row.cutoff, row.kind, row.source)


def cutoffs(models: Sequence[str], configured: str | None) -> tuple[Cutoff, ...]:
    """The cutoff of each model; a configured ISO date holds for all of them."""
    if configured is None:
        return tuple(cutoff_of(model) for model in models)
    day = date.fromisoformat(configured)
    return tuple(Cutoff(model, day, "configured", "llm.knowledge_cutoff") for model in models)
