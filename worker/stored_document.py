"""Whether the document that a run stored is the one that comes out when the run is played again.

What was measured and not decided (times, latencies, overruns) and where the store lies are left out. A
document of an older version may lack figures that this one has; those that both have must be equal.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

MEASURED = frozenset({"timing", "latency_ms", "reflection_latency_ms", "over_budget"})
PLACES = frozenset({"journal.url"})
SHOWN = 5


def differences(stored: Mapping[str, Any] | None, replayed: Mapping[str, Any]) -> tuple[str, ...]:
    """What a stored document says otherwise than the replayed one, the first few; empty when nothing."""
    if stored is None:
        return ("there is no document, and a finished run has one",)
    found = _differing(stored, json.loads(json.dumps(replayed, allow_nan=False)), "")
    return tuple(line for _, line in zip(range(SHOWN), found, strict=False))


def _differing(stored: Any, replayed: Any, path: str) -> Iterator[str]:
    if isinstance(stored, dict) and isinstance(replayed, dict):
        for name in sorted(stored.keys() & replayed.keys()):
            inner = f"{path}.{name}" if path else name
            if name not in MEASURED and inner not in PLACES:
                yield from _differing(stored[name], replayed[name], inner)
    elif isinstance(stored, list) and isinstance(replayed, list) and len(stored) == len(replayed):
        for number, (kept, other) in enumerate(zip(stored, replayed, strict=True)):
            yield from _differing(kept, other, f"{path}.{number}")
    elif stored != replayed:
        yield f"{path} is {_shown(stored)} and comes out as {_shown(replayed)}"


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=True)
    return text if len(text) <= 60 else f"{text[:57]}..."
