"""What a check of the soak came to: its target, its figure, and whether the one meets the other."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
STORED = FOLDER / "measured.json"
ROOT = FOLDER.parents[1]


@dataclass(frozen=True)
class Finding:
    """One line of the table.

    Attributes:
        row: of the list of targets, F1 to F17 and L1 to L9.
        check: what was done.
        target: what has to hold.
        measured: what came out.
        held: whether it held.
        breaks: what did not hold, one sentence each.
        machine: cores, load and interpreter while it was measured.
        took_s: wall time of the check.
    """

    row: str
    check: str
    target: str
    measured: str
    held: bool
    breaks: tuple[str, ...] = ()
    machine: dict[str, Any] = field(default_factory=dict)
    took_s: float = 0.0


def stored() -> list[Finding]:
    """Findings of earlier runs."""
    if not STORED.exists():
        return []
    return [
        Finding(**load | {"breaks": tuple(load["breaks"])}) for load in json.loads(STORED.read_text("utf-8"))
    ]


def keep(new: Iterable[Finding]) -> list[Finding]:
    """Store findings in place of earlier ones of the same check; all of them, in the order of the list."""
    found = {(finding.row, finding.check): finding for finding in stored()}
    new = list(new)
    for row in {finding.row for finding in new}:
        found = {key: finding for key, finding in found.items() if key[0] != row}
    found |= {(finding.row, finding.check): finding for finding in new}
    ordered = sorted(
        found.values(), key=lambda finding: (finding.row[0], int(finding.row[1:].rstrip("MR")), finding.row)
    )
    text = json.dumps([asdict(finding) for finding in ordered], indent=1, ensure_ascii=False)
    STORED.write_text(text + "\n", "utf-8")
    return ordered


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, round(share * len(ordered) + 0.5) - 1))]
