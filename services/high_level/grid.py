"""Candidate values of a playbook's parameters: every grid value, evaluated on the window after costs.

Each value tried joins the tested family, so searching has its price. The winner is a candidate for the shadow
ledger and never becomes active from here. The e-value of a trial is shown for what it leans to and decides
nothing.
"""

from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Any, Protocol

from schemas.errors import InvariantViolation
from schemas.playbook import PlaybookDefinition
from schemas.settings import GateSettings
from schemas.slow_reflection import GridTrial
from services.high_level.trade_bounds import bounds_of
from services.statistics.blocks import Trades, winsorise
from services.statistics.calendar_units import unit_of_timeframe
from services.statistics.sharpe import sharpe_of_a_block
from services.statistics.track import Track

MATERIAL_R = 0.1


class GridEvaluator(Protocol):
    """Trades a playbook with one other parameter value over a stretch of known bars, after costs."""

    def evaluate(
        self, definition: PlaybookDefinition, parameter: str, value: float, start_ns: int, end_ns: int
    ) -> Trades:
        """The trades resolved in [start_ns, end_ns], times their labels."""
        ...


@dataclass(frozen=True)
class Winner:
    """A grid value that was materially better than the one in force."""

    parameter: str
    value: float
    n: int
    mean_r: float
    current_mean_r: float


def run_grid(
    definition: PlaybookDefinition,
    evaluator: GridEvaluator,
    gate: GateSettings,
    reference: float,
    timeframe: str,
    start_ns: int,
    end_ns: int,
) -> tuple[GridTrial, ...]:
    """One trial for each value of each grid, the values in force included; by parameter, then value.

    Raises:
        InvariantViolation: the evaluator used a trade that resolved after `end_ns`.
    """
    trials = []
    for name, parameter in sorted(definition.parameters.items()):
        for value in parameter.grid:
            trades = evaluator.evaluate(definition, name, value, start_ns, end_ns)
            late = trades.exit_ns[trades.exit_ns > end_ns]
            if late.size:
                raise InvariantViolation(
                    f"grid trial {name}={value!r} of {definition.id!r} saw {late[0]} after {end_ns}"
                )
            trials.append(_trial(definition, name, value, trades, gate, reference, timeframe, end_ns))
    return tuple(trials)


def _trial(
    definition: PlaybookDefinition,
    parameter: str,
    value: float,
    trades: Trades,
    gate: GateSettings,
    reference: float,
    timeframe: str,
    at_ns: int,
) -> GridTrial:
    made = GridTrial(
        playbook_id=definition.id, parameter=parameter, value=value, n=len(trades), mean_r=None, e_value=None
    )
    if not len(trades):
        return made
    unit = unit_of_timeframe(gate.block, timeframe)
    track = Track(trades, unit, reference, bounds_of(definition, gate))
    seen = track.at(at_ns)
    mean = float(winsorise(trades.r, gate.winsor_low, gate.winsor_high).mean())
    return made.model_copy(
        update={
            "mean_r": round(mean, 9),
            "e_value": seen.e_value,
            "leaning": seen.leaning,
            "sharpe": sharpe_of_a_block(track, seen.blocks),
        }
    )


def best_candidate(
    definition: PlaybookDefinition, trials: Sequence[GridTrial], minimum: int
) -> Winner | None:
    """The value with the best mean that beats the one in force by 0.1R on at least `minimum` trades, or None.

    Ties go to the parameter first in name order, then to the smaller step.
    """
    current = {
        trial.parameter: trial.mean_r
        for trial in trials
        if trial.value == definition.parameters[trial.parameter].value
    }
    found = []
    for trial in trials:
        base, parameter = current.get(trial.parameter), definition.parameters[trial.parameter]
        if base is None or trial.mean_r is None or trial.n < minimum or trial.value == parameter.value:
            continue
        if trial.mean_r >= base + MATERIAL_R:
            step = abs(parameter.grid.index(trial.value) - parameter.grid.index(parameter.value))
            winner = Winner(trial.parameter, trial.value, trial.n, trial.mean_r, base)
            found.append(((-trial.mean_r, trial.parameter, step, trial.value), winner))
    return min(found, key=lambda item: item[0])[1] if found else None


def neighbour_value(
    definition: PlaybookDefinition, refuted: Set[tuple[Any, ...]] = frozenset()
) -> tuple[str, float] | None:
    """The grid step an experiment tries: one in a declared risk-reducing direction, else any, else None.

    Never one that a candidate's own trades refute.
    """
    steps = []
    for name, parameter in sorted(definition.parameters.items()):
        position = parameter.grid.index(parameter.value)
        up = parameter.grid[position + 1 : position + 2]
        down = parameter.grid[position - 1 : position] if position else ()
        cautious = {"up": up, "down": down, "none": ()}[parameter.risk_reducing]
        for rank, values in ((0, cautious), (1, up), (2, down)):
            steps += [(rank, name, value) for value in values if (definition.id, name, value) not in refuted]
    return min(steps)[1:] if steps else None
