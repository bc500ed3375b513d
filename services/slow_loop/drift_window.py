"""What the slow loop needs to see drift: how entry rules fired, and in which regimes decisions were made.

Counts and outcomes of an entry rule, which is one direction of a playbook, run from one report to the next,
beside those of the window before; fingerprints come one per policy evaluation. What happens between a
report's clock and its arrival belongs to the next window.
"""

from bisect import bisect_right, insort
from collections.abc import Sequence
from operator import itemgetter
from typing import Any, ClassVar

from schemas.state import Stateful
from schemas.vocabulary import TickEventKind

WINDOWS_KEPT = 400  # a block of a slow fingerprint holds forty of them, and eight blocks can be permuted
COUNTED: dict[str, str] = {
    str(TickEventKind.THESIS_ARMED): "armed",
    str(TickEventKind.ACTIVATION_TRIGGERED): "activated",
    str(TickEventKind.THESIS_EXPIRED): "expired",
}
Fired = tuple[int, str, str | float]  # known_at (ns), rule, what was counted or the R
_KNOWN_AT = itemgetter(0)
_BEGINNING = -(2**63)


class DriftWindow(Stateful):
    """Collector of one run; times in ns."""

    STATE: ClassVar = {
        "_seen": list[Fired],
        "_fingerprints": list[tuple[int, tuple[float, ...]]],
    }

    def __init__(self) -> None:
        self._seen: list[Fired] = []
        self._fingerprints: list[tuple[int, tuple[float, ...]]] = []

    def note_fire(self, known_at: int, rule: str, what: str | float) -> None:
        """Count an armed thesis, how one ended, or the R of a trade."""
        insort(self._seen, (known_at, rule, what), key=_KNOWN_AT)

    def note_regime(self, known_at: int, fingerprint: Sequence[float]) -> None:
        """Note the regime of one policy evaluation."""
        insort(self._fingerprints, (known_at, tuple(fingerprint)), key=_KNOWN_AT)

    def inputs(self, trigger: str, closes: Sequence[int], clock: int) -> dict[str, Any]:
        """The drift inputs of a request, in the shape of `services.high_level.drift.DriftInputs`.

        Args:
            trigger: what asked for the report.
            closes: up to where each earlier report knew, ascending.
            clock: what was known later does not exist.
        """
        before, last = (_BEGINNING, _BEGINNING, *closes)[-2:]
        earlier, now = self._count(before, last), self._count(last, clock)
        decided = self._fingerprints[: bisect_right(self._fingerprints, clock, key=_KNOWN_AT)]
        return {
            "trigger": trigger,
            "fingerprints": tuple(fingerprint for _, fingerprint in decided[-WINDOWS_KEPT:]),
            "fires": {
                name: {"now": now.get(name, _nothing()), "before": earlier.get(name, _nothing())}
                for name in sorted({*now, *earlier})
            },
        }

    def forget(self, until: int) -> None:
        """No request reads again what was known by `until`, but the newest fingerprints."""
        del self._seen[: bisect_right(self._seen, until, key=_KNOWN_AT)]
        self.forget_regimes(until)

    def forget_regimes(self, until: int) -> None:
        """No request asks as of a time before `until`: of the fingerprints by then it reads the newest."""
        old = bisect_right(self._fingerprints, until, key=_KNOWN_AT)
        del self._fingerprints[: max(0, old - WINDOWS_KEPT)]

    def _count(self, after: int, until: int) -> dict[str, dict[str, Any]]:
        first, end = (bisect_right(self._seen, at, key=_KNOWN_AT) for at in (after, until))
        rules: dict[str, dict[str, Any]] = {}
        for _, rule, what in self._seen[first:end]:
            fires = rules.setdefault(rule, _nothing())
            if isinstance(what, str):
                fires[what] += 1
            else:
                fires["r"] += (what,)
        return rules


def _nothing() -> dict[str, Any]:
    return {
        **dict.fromkeys(COUNTED.values(), 0),
        "r": (),
    }  # the shape of `schemas.slow_reflection.FireCounts`
