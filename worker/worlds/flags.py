"""What the running gate flags in runs of a world, look by look.

The grades come from `decide_cases`, which grades the slow loop's reports. It is asked only where it can
select: e-values in the declared unit are computed for all runs and looks at once, and no widened unit has a
larger one, so e-BH on them selects at least what the gate does. Members that it leaves out cannot change who
is selected, because they do not reach their level at the larger number either.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from schemas.config import GateSettings
from schemas.vocabulary import EvidenceGrade, RecommendedAction
from services.high_level.gate import STRENGTH
from services.high_level.grading import Case, decide_cases, minimum_of
from services.high_level.trade_table import TableCluster, TradeTable, clusters_of
from services.statistics.eprocess import log_e_path
from services.statistics.multiplicity import Family, e_bh_rows, register_family

STRUCTURAL = STRENGTH[RecommendedAction.POLICY_ADJUST]


@dataclass(frozen=True)
class Flags:
    """First look (index) at which each hypothesis of one run was significant, and at which it was structural.

    Structural is what may be changed by it: a losing cluster whose grade allows an adjustment.
    """

    significant: dict[str, int]
    structural: dict[str, int]


def hypotheses_of(table: TradeTable, gate: GateSettings) -> tuple[TableCluster, ...]:
    """The clusters of a table, each hypothesis once."""
    named = {item.tested_as: item for item in reversed(clusters_of(table, gate))}
    return tuple(named[name] for name in sorted(named))


def flags_of(
    runs: Sequence[tuple[TableCluster, ...]], gate: GateSettings, looks: Sequence[int]
) -> tuple[Flags, ...]:
    """Flags of several runs of one world; looks are the ends of calendar weeks, ns.

    Every cluster has trades in every week, so each look ends a block.
    """
    family = register_family([item.tested_as for item in runs[0]], gate.q)
    screened = _screened(runs, family)
    return tuple(_flags(run, family, gate, looks, seen) for run, seen in zip(runs, screened, strict=True))


def _screened(runs: Sequence[tuple[TableCluster, ...]], family: Family) -> NDArray[np.bool_]:
    """What e-BH selects at each look on e-values in the declared unit, shape (runs, looks, clusters)."""
    seen = [[item.growing.observations() for item in run] for run in runs]
    values, low, high = (
        np.array([[getattr(one, name) for one in run] for run in seen]) for name in ("values", "low", "high")
    )
    references = np.array([[one.reference for one in run] for run in seen])
    log_e = log_e_path(values, low, high, references)
    return e_bh_rows(np.moveaxis(log_e, -1, 1) + np.log(family.charged), family.q)


def _flags(
    run: tuple[TableCluster, ...],
    family: Family,
    gate: GateSettings,
    looks: Sequence[int],
    screened: NDArray[np.bool_],
) -> Flags:
    flags = Flags({}, {})
    for look in map(int, np.flatnonzero(screened.any(axis=1))):
        chosen = [run[index] for index in np.flatnonzero(screened[look])]
        if all(item.tested_as in flags.structural for item in chosen):
            continue
        _look(chosen, family, gate, look, looks[look], flags)
    return flags


def _look(
    chosen: Sequence[TableCluster], family: Family, gate: GateSettings, look: int, at_ns: int, flags: Flags
) -> None:
    minimum = minimum_of(gate, None)
    samples = [item.growing.sample(item.growing.count(at_ns)) for item in chosen]
    cases = [
        Case(item.tested_as, seen, minimum, item.regime is not None)
        for item, seen in zip(chosen, samples, strict=True)
    ]
    for item, seen, verdict in zip(chosen, samples, decide_cases(cases, family, gate), strict=True):
        if verdict.decision.grade is not EvidenceGrade.SIGNIFICANT:
            continue
        flags.significant.setdefault(item.tested_as, look)
        losing = seen.mean_r is not None and seen.mean_r < seen.observations.reference
        if losing and STRENGTH[verdict.decision.strongest_action] >= STRUCTURAL:
            flags.structural.setdefault(item.tested_as, look)
