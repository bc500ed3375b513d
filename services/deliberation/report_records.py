"""The records of a report in one flat form: the values that a statement about it may give, by name."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from schemas.reflection import HighLevelReflectionReport
from schemas.slow_reflection import (
    SUGGESTIVE_E,
    ClusterFinding,
    FireQuality,
    Recommendation,
    RegimeShift,
)

Record = Mapping[str, Any]
SHORT_OF = re.compile(r" of (\d+) resolved trades")
STRUCTURAL = frozenset({"policy_adjust", "replan"})


def records_of(report: HighLevelReflectionReport, lost: int) -> dict[str, tuple[Record, ...]]:
    """Every record of a report by its sort; shares are 0 to 1, holds in bars, effects in R.

    `lost` is the number of trades that had lost by then, with those that have no failure mode.
    """
    losers = {"losers": sum(report.failure_modes.values()), "lost": lost}
    modes = sorted(report.failure_modes.items())
    whole = _whole(report)
    return {
        "cluster": tuple(
            {**_cluster(finding), **whole} for finding in report.clusters if not finding.timeframe
        ),
        "expectation": tuple(map(vars, report.expectations)),
        "fire": tuple(map(_fire, report.fire_quality)),
        "shift": () if report.regime_shift is None else (_shift(report.regime_shift),),
        "rank": () if report.regime_shift is None else tuple(_ranks(report.regime_shift)),
        "advice": tuple(map(_advice, report.recommendations)),
        "trial": report.shadow_trials,
        "failure": tuple({"mode": mode, "count": count, **losers} for mode, count in modes),
        "failure_of": tuple(
            {"playbook_id": finding.playbook_id, "mode": mode, "count": count}
            for finding in report.clusters
            if not finding.timeframe and finding.regime is None
            for mode, count in sorted(finding.failure_modes.items())
        ),
        "decay": tuple(map(vars, report.decay)),
        "untraded": tuple({"why": why, **told} for why, told in sorted(report.untraded.items())),
        "report": (whole,),
    }


def _cluster(finding: ClusterFinding) -> Record:
    told = SHORT_OF.search(finding.reason)
    needed = None if told is None else int(told[1])
    significant = 1.0 / finding.alpha
    is_suggestive = finding.e_value is not None and finding.e_value >= SUGGESTIVE_E
    return vars(finding) | {
        "e_significant": significant,
        "e_next": significant if is_suggestive else SUGGESTIVE_E,
        "e_suggestive": SUGGESTIVE_E,
        "needed": needed,
        "missing": None if needed is None else needed - finding.n,
    }


def _fire(row: FireQuality) -> Record:
    told = {f"{name}_now": value for name, value in vars(row.now).items()}
    told |= {f"{name}_before": value for name, value in vars(row.before).items()}
    return told | {"playbook_id": row.playbook_id, "direction": row.direction}


def _shift(shift: RegimeShift) -> Record:
    moves = [abs(shift.newer[name] - old) for name, old in shift.older.items()]
    return vars(shift) | {"largest_move": max(moves, default=None)}


def _advice(item: Recommendation) -> Record:
    change = {f"on_{name}": item.change.get(name) for name in ("parameter", "value")}
    return vars(item) | change


def _ranks(shift: RegimeShift) -> Iterator[Record]:
    for name, old in shift.older.items():
        yield {"rank": name.removesuffix("_rank"), "older": old, "newer": shift.newer[name]}


def _whole(report: HighLevelReflectionReport) -> Record:
    actions = [item.action.value for item in report.recommendations]
    return {
        "window_start": f"{report.window_start:%Y-%m-%d}",
        "window_end": f"{report.window_end:%Y-%m-%d}",
        "n_episodes": report.n_episodes,
        "only_action": actions[0] if len(set(actions)) == 1 else None,
        "structural": not STRUCTURAL.isdisjoint(actions),
        "alarms": sum(level.alarmed for level in report.decay),
        "advised": len(actions),
        "unclassified_share": report.unclassified_share,
    }
