"""What the slow loop needs to see drift: how entry rules fired, and in which regimes decisions were made.

Counts run from one report to the next, beside those of the window before; fingerprints come one per policy
evaluation. Filled by the session as things happen, read when a report is due.
"""

from collections import Counter, deque
from typing import Any

from schemas.reflection import TickValidationEvent
from schemas.regime import RegimeView
from schemas.vocabulary import TickEventKind

WINDOWS_KEPT = 200
COUNTED = {
    TickEventKind.THESIS_ARMED: "armed",
    TickEventKind.ACTIVATION_TRIGGERED: "activated",
    TickEventKind.THESIS_EXPIRED: "expired",
}
Fires = dict[str, Counter[str]]


class DriftWindow:
    """Collector of one run."""

    def __init__(self) -> None:
        self._now: Fires = {}
        self._before: Fires = {}
        self._fingerprints: deque[tuple[float, ...]] = deque(maxlen=WINDOWS_KEPT)

    def observe(self, event: TickValidationEvent) -> None:
        """Count an armed thesis and how it ended."""
        name, playbook = COUNTED.get(event.kind), event.detail.get("playbook_id")
        if name is not None and playbook is not None:
            self._now.setdefault(str(playbook), Counter())[name] += 1

    def decided_in(self, regime: RegimeView | None) -> None:
        """Note the regime of one policy evaluation."""
        if regime is not None:
            self._fingerprints.append(regime.fingerprint)

    def inputs(self, trigger: str) -> dict[str, Any]:
        """The drift inputs of a request, in the shape of `services.high_level.drift.DriftInputs`."""
        names = sorted({*self._now, *self._before})
        return {
            "trigger": trigger,
            "fingerprints": tuple(self._fingerprints),
            "fires": {
                name: {"now": _counts(self._now.get(name)), "before": _counts(self._before.get(name))}
                for name in names
            },
        }

    def close(self) -> None:
        """A report was written: what was counted becomes the window before."""
        self._before, self._now = self._now, {}


def _counts(fires: Counter[str] | None) -> dict[str, int]:
    return {name: 0 if fires is None else fires[name] for name in COUNTED.values()}
