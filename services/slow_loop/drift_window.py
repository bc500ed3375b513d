"""What the slow loop needs to see drift: how entry rules fired, and in which regimes decisions were made.

Counts and outcomes of an entry rule, which is one direction of a playbook, run from one report to the next,
beside those of the window before; fingerprints come one per policy evaluation. Filled by the session as
things happen, read when a report is due. What happens between a report's clock and its arrival belongs to the
next window.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Any

from schemas.episode import Episode
from schemas.reflection import TickValidationEvent
from schemas.regime import RegimeView
from schemas.vocabulary import Direction, TickEventKind
from services.high_level.fire_quality import rule_name

WINDOWS_KEPT = 400  # a block of a slow fingerprint holds forty of them, and eight blocks can be permuted
COUNTED = {
    TickEventKind.THESIS_ARMED: "armed",
    TickEventKind.ACTIVATION_TRIGGERED: "activated",
    TickEventKind.THESIS_EXPIRED: "expired",
}


@dataclass
class Fires:
    """One entry rule in one window."""

    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTED.values(), 0))
    r: list[float] = field(default_factory=list)

    def payload(self) -> dict[str, Any]:
        """In the shape of `schemas.reflection.FireCounts`."""
        return {**self.counts, "r": tuple(self.r)}


class DriftWindow:
    """Collector of one run."""

    def __init__(self) -> None:
        self._seen: list[tuple[int, str, str | float]] = []  # known_at (ns), rule, what was counted or the R
        self._before: dict[str, Fires] = {}
        self._fingerprints: deque[tuple[float, ...]] = deque(maxlen=WINDOWS_KEPT)

    def observe(self, event: TickValidationEvent, direction: Direction | None) -> None:
        """Count an armed thesis and how it ended; `direction` is that of the policy behind the event."""
        name, playbook = COUNTED.get(event.kind), event.detail.get("playbook_id")
        if name is not None and playbook is not None and direction is not None:
            self._seen.append((event.known_at, rule_name(str(playbook), direction), name))

    def resolved(self, episode: Episode) -> None:
        """Note the outcome of a trade that may teach."""
        if not episode.no_learn:
            rule = rule_name(episode.playbook_id, episode.direction)
            self._seen.append((episode.known_at, rule, episode.r))

    def decided_in(self, regime: RegimeView | None) -> None:
        """Note the regime of one policy evaluation."""
        if regime is not None:
            self._fingerprints.append(regime.fingerprint)

    def inputs(self, trigger: str) -> dict[str, Any]:
        """The drift inputs of a request, in the shape of `services.high_level.drift.DriftInputs`."""
        nothing, now = Fires(), _counted(self._seen)
        return {
            "trigger": trigger,
            "fingerprints": tuple(self._fingerprints),
            "fires": {
                name: {
                    "now": now.get(name, nothing).payload(),
                    "before": self._before.get(name, nothing).payload(),
                }
                for name in sorted({*now, *self._before})
            },
        }

    def close(self, until: int) -> None:
        """A report was written that knew everything up to `until`, ns: that becomes the window before."""
        self._before = _counted([one for one in self._seen if one[0] <= until])
        self._seen = [one for one in self._seen if one[0] > until]


def _counted(seen: list[tuple[int, str, str | float]]) -> dict[str, Fires]:
    rules: dict[str, Fires] = {}
    for _, rule, what in seen:
        fires = rules.setdefault(rule, Fires())
        if isinstance(what, str):
            fires.counts[what] += 1
        else:
            fires.r.append(what)
    return rules
