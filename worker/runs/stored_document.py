"""Whether the document that a run stored is the one that comes out when the run is played again.

What was measured and not decided (times, latencies, overruns) and where the store lies are left out. A
document of the same version of the program has the same figures, no more and no fewer; of another version
only the figures that both have are compared.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

MEASURED = frozenset(
    {"timing", "latency_ms", "reflection_latency_ms", "over_budget", "budget_held_share", "response_time_ms"}
)
PLACES = frozenset({"journal.url"})
SHOWN = 5


def differences(
    stored: Mapping[str, Any] | None, replayed: Mapping[str, Any], *, same_version: bool = True
) -> tuple[str, ...]:
    """What a stored document says otherwise than the replayed one, the first few; empty when nothing.

    Args:
        stored: as the run row has it.
        replayed: as it comes out now.
        same_version: whether the program that made it is this one, so that both have the same figures.
    """
    if stored is None:
        return ("there is no document, and a finished run has one",)
    found = _differing(stored, json.loads(json.dumps(replayed, allow_nan=False)), "", same_version)
    return tuple(line for _, line in zip(range(SHOWN), found, strict=False))


def _differing(stored: Any, replayed: Any, path: str, whole: bool) -> Iterator[str]:
    if isinstance(stored, dict) and isinstance(replayed, dict):
        for name in sorted(stored.keys() | replayed.keys() if whole else stored.keys() & replayed.keys()):
            inner = f"{path}.{name}" if path else name
            if name not in stored:
                yield f"{inner} is missing and comes out as {_shown(replayed[name])}"
            elif name not in replayed:
                yield f"{inner} is {_shown(stored[name])} and does not come out"
            elif name not in MEASURED and inner not in PLACES:
                yield from _differing(stored[name], replayed[name], inner, whole)
    elif isinstance(stored, list) and isinstance(replayed, list) and len(stored) == len(replayed):
        for number, (kept, other) in enumerate(zip(stored, replayed, strict=True)):
            yield from _differing(kept, other, f"{path}.{number}", whole)
    elif json.dumps(stored) != json.dumps(replayed):  # as text: 1, 1.0, "1" and true are four figures
        yield f"{path} is {_shown(stored)} and comes out as {_shown(replayed)}"


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=True)
    return text if len(text) <= 60 else f"{text[:57]}..."
