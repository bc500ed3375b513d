"""Lines of a report: edges of an interval, what was tried before it, an alarm of decay."""

from collections.abc import Mapping
from typing import Any

from schemas.trials import TrialLedger

LEVEL_SHOWN = 1e9  # an e-detector's level is told up to here


def interval_text(lower: float | None, upper: float | None, kind: str = "") -> str:
    """`[-0.20, +0.38]`, `[-0.20, open]`, `[open, +0.38]`, `open`, or `none`; R with two digits.

    `(last look)` follows where the mean moved, so that no interval of every look holds it.
    """
    if kind == "moved":
        return f"{interval_text(lower, upper)} (last look)"
    if lower is None and upper is None:
        return "none" if kind == "none" else "open"
    edges = ("open" if edge is None else f"{edge:+.2f}" for edge in (lower, upper))
    return f"[{', '.join(edges)}]"


def ledger_line(report: Mapping[str, Any]) -> str | None:
    """What was tried on the bars of a stored report before its run; None where nothing was."""
    held = report.get("ledger")
    line = None if held is None else TrialLedger.model_validate(held).line()
    return None if line is None else f"{line[0].upper()}{line[1:]}."


def decay_text(playbook_id: str, level: float, limit: float) -> str:
    """One readable line for an alarm at this level."""
    shown = min(level, LEVEL_SHOWN)
    return f"decay {playbook_id}: e-detector reached {shown:.4g}, limit {limit:.4g}; monitoring only"
