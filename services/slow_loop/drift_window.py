"""What the slow loop needs to see drift: how entry rules fired, and in which regimes decisions were made.

Counts and outcomes of an entry rule, which is one direction of a playbook, run from one report to the next,
beside those of the window before; fingerprints come one per policy evaluation. Filled by the session as
things happen, read when a report is due.
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
        self._now: dict[str, Fires] = {}
        self._before: dict[str, Fires] = {}
        self._fingerprints: deque[tuple[float, ...]] = deque(maxlen=WINDOWS_KEPT)

    def observe(self, event: TickValidationEvent, direction: Direction | None) -> None:
        """Count an armed thesis and how it ended; `direction` is that of the policy behind the event."""
        name, playbook = COUNTED.get(event.kind), event.detail.get("playbook_id")
        if name is not None and playbook is not None and direction is not None:
            self._rule(str(playbook), direction).counts[name] += 1

    def resolved(self, episode: Episode) -> None:
        """Note the outcome of a trade that may teach."""
        if not episode.no_learn:
            self._rule(episode.playbook_id, episode.direction).r.append(episode.r)

    def decided_in(self, regime: RegimeView | None) -> None:
        """Note the regime of one policy evaluation."""
        if regime is not None:
            self._fingerprints.append(regime.fingerprint)

    def inputs(self, trigger: str) -> dict[str, Any]:
        """The drift inputs of a request, in the shape of `services.high_level.drift.DriftInputs`."""
        nothing = Fires()
        return {
            "trigger": trigger,
            "fingerprints": tuple(self._fingerprints),
            "fires": {
                name: {
                    "now": self._now.get(name, nothing).payload(),
                    "before": self._before.get(name, nothing).payload(),
                }
                for name in sorted({*self._now, *self._before})
            },
        }

    def close(self) -> None:
        """A report was written: what was counted becomes the window before."""
        self._before, self._now = self._now, {}

    def _rule(self, playbook_id: str, direction: Direction) -> Fires:
        return self._now.setdefault(rule_name(playbook_id, direction), Fires())
