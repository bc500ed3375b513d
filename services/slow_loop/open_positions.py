"""Positions that are open at a time: the block that one of them was entered in waits for its exit.

Fed by fills and resolved trades, from the run as it goes on and from its journal alike.
"""

from dataclasses import dataclass
from typing import ClassVar

from schemas.episode import Episode
from schemas.slow_reflection import OpenEntry
from schemas.state import Stateful


@dataclass
class _Position:
    entry: OpenEntry
    known_at: int
    closed_at: int | None = None


class OpenPositions(Stateful):
    """The positions of one run, one of a symbol at a time."""

    STATE: ClassVar = {"_open": dict[str, _Position], "_closed": list[_Position]}

    def __init__(self) -> None:
        self._open: dict[str, _Position] = {}
        self._closed: list[_Position] = []

    def note_entry(self, symbol: str, entry: OpenEntry, known_at: int) -> None:
        """A position was opened; `known_at` in ns."""
        self._open[symbol] = _Position(entry, known_at)

    def note_exit(self, episode: Episode) -> None:
        """The position of a symbol was closed."""
        position = self._open.pop(episode.symbol, None)
        if position is not None:
            position.closed_at = episode.known_at
            self._closed.append(position)

    def forget(self, until: int) -> None:
        """Nobody asks again what was open at `until`, ns, or before."""
        self._closed = [position for position in self._closed if _lasts_beyond(position, until)]

    def at(self, clock: int) -> tuple[OpenEntry, ...]:
        """What was open at a time, ns, by entry and playbook."""
        found = [
            position.entry
            for position in (*self._open.values(), *self._closed)
            if position.known_at <= clock and _lasts_beyond(position, clock)
        ]
        return tuple(sorted(found, key=lambda entry: (entry.entry_label, entry.playbook_id, entry.regime)))


def _lasts_beyond(position: _Position, clock: int) -> bool:
    return position.closed_at is None or position.closed_at > clock
