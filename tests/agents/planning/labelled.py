"""Labelled questions: what each expects to be called, read from the text files beside this module."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from schemas.evidence_plan import GatheredEvidence

HERE = Path(__file__).parent
CALL = re.compile(r"(\w+)\(([^)]*)\)")
CLEAR = ("snapshot", "episodes", "context", "chain", "fill", "playbook")
Called = tuple[str, tuple[tuple[str, Any], ...]]


@dataclass(frozen=True)
class LabelledQuestion:
    """A question of a kind, what earlier turns were about, and the calls that it expects, or a plan.

    Attributes:
        also: tools that it may have called beside.
    """

    kind: str
    text: str
    recent: Mapping[str, str]
    calls: tuple[Called, ...]
    is_change: bool = False
    also: frozenset[str] = frozenset()


def labelled(name: str, ids: Mapping[str, str]) -> Iterator[LabelledQuestion]:
    """The questions of a file, with the ids of a run in their places."""
    kind, recent = "", dict[str, str]()
    for line in (HERE / f"questions_{name}.txt").read_text("utf-8").splitlines():
        for place, id_ in ids.items():
            line = line.replace(f"{{{place}}}", id_)
        if line.startswith("["):
            kind, *named = line.strip("[]").split()
            recent = dict(pair.split("=") for pair in named)
        elif line and not line.startswith("#"):
            text, _, calls = line.partition(" => ")
            expected = tuple(_called(*found) for found in CALL.findall(calls))
            yield LabelledQuestion(kind, text, recent, expected, calls == "plan")


def _called(method: str, listed: str) -> Called:
    pairs = (pair.split("=", 1) for pair in listed.split(", ") if pair)
    return method, tuple(sorted((name, int(value) if name == "limit" else value) for name, value in pairs))


def made(gathered: GatheredEvidence) -> tuple[Called, ...]:
    """The calls that were made, with `*` for an id that an earlier call brought."""
    found: list[Called] = []
    for call in gathered.calls:
        params = dict(call.params)
        if call.iteration > 1:
            params |= {name: "*" for name in ("fill_id", "report_id") if name in params}
        found.append((call.method, tuple(sorted(params.items()))))
    return tuple(found)
