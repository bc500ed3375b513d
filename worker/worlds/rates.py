"""How often the gate is wrong and how often it finds what is there, by world.

Null worlds have nothing to find. In planted worlds one cell of the first playbook loses 0.4R a trade. In
decaying worlds every playbook earns 0.2R a trade, as its contract says, until the first one loses 0.3R from
its 260th trade on.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Literal

import numpy as np

from schemas.config import GateSettings
from services.statistics.drift import detect_decay
from worker.worlds.draws import PER_WEEK, REGIMES, WORLDS, Floats, Grid, World, batches, cost_of, table_of
from worker.worlds.flags import Flags, flags_of, hypotheses_of
from worker.worlds.other_rules import RuleCounts, t_tests, win_rate_cut

Kind = Literal["null", "planted", "decay"]
KINDS: tuple[Kind, ...] = ("null", "planted", "decay")
CELLS = (12, 24)
YEAR_WEEKS = 52
PLANTED_R = -0.4
EARNED_R, LOST_R = 0.2, -0.3
DECAY_TRADE = 260
TOLD = "t3"
HEADLINE = ("any_structural_rate", "false_structural_rate", "false_share", "power", "median_delay_trades")


@dataclass
class Tally:
    """What happened in the runs of one world so far."""

    runs: int = 0
    any_structural: int = 0
    false_structural: int = 0
    false_shares: float = 0.0
    flags: int = 0
    false_flags: int = 0
    delays: list[int] = field(default_factory=list)
    structural_delays: list[int] = field(default_factory=list)
    false_alarms: int = 0
    rules: dict[str, RuleCounts] = field(default_factory=dict)


@dataclass(frozen=True)
class Setting:
    """A kind of world: its cells, their edge, the reference, and what is truly off it from which trade on."""

    kind: Kind
    grid: Grid
    mean: Floats
    reference: float
    off: frozenset[str]
    since_trade: int


def setting_of(kind: Kind, world: World, cells: int) -> Setting:
    """How a world of a kind is made."""
    if kind == "decay":
        grid = Grid(playbooks=cells, regimes=1, weeks=2 * DECAY_TRADE // PER_WEEK)
        mean = np.full((grid.cells, grid.trades), EARNED_R)
        mean[0, DECAY_TRADE:] = LOST_R
        off = frozenset({"playbook_00", f"playbook_00|{REGIMES[0]}"})
        return Setting(kind, grid, mean, EARNED_R - cost_of(world), off, DECAY_TRADE)
    grid = Grid(playbooks=cells // len(REGIMES), regimes=len(REGIMES), weeks=YEAR_WEEKS)
    mean = np.zeros((grid.cells, 1))
    if kind == "null":
        return Setting(kind, grid, mean, -cost_of(world), frozenset(), 0)
    mean[0] = PLANTED_R
    off = frozenset({"playbook_00", f"playbook_00|{REGIMES[0]}"})
    return Setting(kind, grid, mean, -cost_of(world), off, 0)


def measure_all(
    kinds: Sequence[Kind], cells: Sequence[int], runs: int, seed: int, tell: Callable[[str], None]
) -> dict[str, Any]:
    """The document of `thinktwice worlds`: the figures that count first, then every kind with its worlds.

    `any_structural_rate` is the worst null's and `power` that of planted t(3) outcomes, where both are asked
    for; one kind alone gives its own.
    """
    found = {kind: measure(kind, cells, runs, seed, tell) for kind in kinds}
    first, planted = found[kinds[0]], found.get("planted", found[kinds[0]])
    return {
        "kind": kinds[0] if len(kinds) == 1 else "all",
        "runs": runs,
        "seed": seed,
        "any_structural_rate": first["any_structural_rate"],
        "false_share": max(one["false_share"] for one in found.values()),
        "power": planted["power"],
        "median_delay_trades": planted["median_delay_trades"],
        "kinds": {kind: {name: one[name] for name in HEADLINE} for kind, one in found.items()},
        "worlds": [world for one in found.values() for world in one["worlds"]],
    }


def measure(
    kind: Kind, cells: Sequence[int], runs: int, seed: int, tell: Callable[[str], None]
) -> dict[str, Any]:
    """Rates of one kind of world: over all its worlds, then of each world and number of cells.

    The first figures are the worst over the worlds for what may go wrong, and those of independent t(3)
    outcomes for what has to be found.
    """
    found = []
    for world in WORLDS:
        for count in cells:
            tell(f"{kind} {world} {count} cells")
            found.append(_measured(kind, world, count, runs, seed))
    told = [one for one in found if one["world"] == TOLD]
    return {**_headline(kind, found, told), "worlds": found}


def _headline(kind: Kind, found: Sequence[dict[str, Any]], told: Sequence[dict[str, Any]]) -> dict[str, Any]:
    delays = [one["median_delay_trades"] for one in told if one["median_delay_trades"] is not None]
    return {
        "any_structural_rate": max(one["any_structural_rate"] for one in found),
        "false_structural_rate": max(one["false_structural_rate"] for one in found),
        "false_share": max(one["false_share"] for one in found),
        "power": None if kind == "null" else min(one["power"] for one in told),
        "median_delay_trades": max(delays, default=None),
    }


def _measured(kind: Kind, world: World, cells: int, runs: int, seed: int) -> dict[str, Any]:
    setting = setting_of(kind, world, cells)
    gate = GateSettings(reference_r=setting.reference)
    tally = Tally(rules={"count_and_win_rate": RuleCounts(), "weekly_t_tests": RuleCounts()})
    for r in batches(world, setting.grid, setting.mean, runs, seed):
        tables = [table_of(one, setting.grid, setting.reference) for one in r]
        clusters = [hypotheses_of(table, gate) for table in tables]
        for run, flags in zip(clusters, flags_of(clusters, gate, setting.grid.looks), strict=True):
            _count(tally, flags, setting)
            if kind == "decay":
                parent = next(item for item in run if item.tested_as == "playbook_00")
                _count_decay(tally, parent.growing.observations(), setting)
        _count_rules(tally, r, setting)
    return {"kind": kind, "world": world, "cells": cells, **_figures(tally, setting)}


def _count(tally: Tally, flags: Flags, setting: Setting) -> None:
    since = setting.since_trade // PER_WEEK
    wrong = [name for name, look in flags.significant.items() if name not in setting.off or look < since]
    unfounded = [name for name, look in flags.structural.items() if name not in setting.off or look < since]
    tally.runs += 1
    tally.any_structural += bool(flags.structural)
    tally.false_structural += bool(unfounded)
    tally.flags += len(flags.significant)
    tally.false_flags += len(wrong)
    tally.false_shares += len(wrong) / max(len(flags.significant), 1)
    planted = f"playbook_00|{REGIMES[0]}"
    if planted in setting.off and flags.structural.get(planted, -1) >= since:
        tally.structural_delays.append((flags.structural[planted] + 1) * PER_WEEK - setting.since_trade)


def _count_decay(tally: Tally, seen: Any, setting: Setting) -> None:
    """The e-detector on the blocks of the playbook that decays, as the slow loop runs it."""
    alarm = detect_decay(seen.values, seen.low, seen.high, seen.reference).alarm_index
    since = setting.since_trade // PER_WEEK
    if alarm is not None and alarm < since:
        tally.false_alarms += 1
    elif alarm is not None:
        tally.delays.append((alarm + 1) * PER_WEEK - setting.since_trade)


def _count_rules(tally: Tally, r: Floats, setting: Setting) -> None:
    losing = win_rate_cut(r)
    tally.rules["count_and_win_rate"].add(losing, losing)
    tally.rules["weekly_t_tests"].add(*t_tests(r, setting.reference))


def _figures(tally: Tally, setting: Setting) -> dict[str, Any]:
    decays = setting.kind == "decay"
    delays = tally.delays if decays else tally.structural_delays
    figures: dict[str, Any] = {
        "any_structural_rate": round(tally.any_structural / tally.runs, 6),
        "false_structural_rate": round(tally.false_structural / tally.runs, 6),
        "false_share": round(tally.false_shares / tally.runs, 6),
        "flags": tally.flags,
        "false_flags": tally.false_flags,
        "power": round(len(delays) / tally.runs, 6) if setting.off else None,
        "median_delay_trades": median(delays) if delays else None,
    }
    if decays:
        figures["false_alarm_rate"] = round(tally.false_alarms / tally.runs, 6)
        figures["structural_power"] = round(len(tally.structural_delays) / tally.runs, 6)
        found = tally.structural_delays
        figures["structural_delay_trades"] = median(found) if found else None
        return figures
    return figures | {"other_rules": {name: one.rates() for name, one in tally.rules.items()}}
