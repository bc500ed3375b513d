"""Two journals of one run, made on two machines: equal but for last bits of floats, and ids over them."""

import json
import math
import re
from collections.abc import Sequence
from typing import Any

from services.journal.chain import JournalRow

RELATIVE, ABSOLUTE = 1e-9, 1e-12
HASH = re.compile(r"[0-9a-f]{16,64}")
NUMBER = re.compile(r"[-+]?\d+\.?\d*(?:e[-+]?\d+)?")
HEADER = ("seq", "ts_event", "known_at", "kind", "symbol")


def difference(stored: Sequence[JournalRow], played: Sequence[JournalRow]) -> str | None:
    """The first difference that no rounding explains; None where there is none."""
    renamed = _Renaming()
    for row, other in zip(stored, played, strict=False):
        for name in HEADER:
            if getattr(row, name) != getattr(other, name):
                text = f"{name} is {getattr(other, name)!r} and was {getattr(row, name)!r}"
                return f"row {row.seq} ({row.kind}): {text}"
        found = renamed.difference(json.loads(row.payload), json.loads(other.payload), "payload")
        if found is not None:
            return f"row {row.seq} ({row.kind}): {found}"
    if len(stored) != len(played):
        return f"{len(played)} rows and were {len(stored)}"
    return None


class _Renaming:
    """Ids are hashes over floats: one journal's go with the other's, one to one."""

    def __init__(self) -> None:
        self._there: dict[str, str] = {}
        self._back: dict[str, str] = {}

    def difference(self, was: Any, now: Any, place: str) -> str | None:
        """Where two payloads differ."""
        text = f"{place} is {now!r} and was {was!r}"
        if isinstance(was, dict) and isinstance(now, dict):
            if was.keys() != now.keys():
                return f"{place} has {sorted(now.keys() ^ was.keys())} or had them"
            return self._first((was[name], now[name], f"{place}.{name}") for name in was)
        if isinstance(was, list) and isinstance(now, list):
            if len(was) != len(now):
                return f"{place} has {len(now)} entries and had {len(was)}"
            return self._first((a, b, f"{place}[{n}]") for n, (a, b) in enumerate(zip(was, now, strict=True)))
        if isinstance(was, str) and isinstance(now, str):
            return None if self._same_text(was, now) else text
        if type(was) is not type(now) or isinstance(was, bool):
            return None if was is now or _close(was, now) else text
        return None if was == now or _close(was, now) else text

    def _first(self, parts: Any) -> str | None:
        found = (self.difference(*part) for part in parts)
        return next((entry for entry in found if entry is not None), None)

    def _same_text(self, was: str, now: str) -> bool:
        if HASH.fullmatch(was) and HASH.fullmatch(now) and len(was) == len(now):
            return self._there.setdefault(was, now) == now and self._back.setdefault(now, was) == was
        if was == now:
            return True
        if NUMBER.sub("", was) != NUMBER.sub("", now):
            return False
        pairs = zip(NUMBER.findall(was), NUMBER.findall(now), strict=True)
        return all(abs(float(a) - float(b)) <= 1.01 * _last_place(a) for a, b in pairs)


def _close(was: Any, now: Any) -> bool:
    numbers = (int, float)
    if isinstance(was, bool) or isinstance(now, bool) or not isinstance(was, numbers):
        return False
    floats = isinstance(now, numbers) and (isinstance(was, float) or isinstance(now, float))
    return floats and math.isclose(was, now, rel_tol=RELATIVE, abs_tol=ABSOLUTE)


def _last_place(text: str) -> float:
    """One unit in the last place of a number that is shown rounded; a whole number is exact."""
    mantissa, _, exponent = text.partition("e")
    places = len(mantissa.partition(".")[2])
    return float(10.0 ** (int(exponent or 0) - places)) if places else 0.0
