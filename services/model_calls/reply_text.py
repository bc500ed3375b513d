"""What every closed reply of a model has in common before its own contract is asked."""

from typing import Any

SHOWN = 60


def object_without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An `object_pairs_hook` of `json.loads`: a key that stands twice would hide one of its values.

    Raises:
        ValueError: a key stands twice.
    """
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key[:SHOWN]!r} stands twice")
        found[key] = value
    return found
