"""What one action of the judge would do to a playbook: a limit, its end, a trial, nothing, or a refusal.

Pure: reads the present situation, changes nothing. Bounds of the file (unknown names, values off the grid)
were the action contract's to refuse and are a violation here; what depends on the present state (floors,
repeats) is refused.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from schemas.errors import InvariantViolation, nearest
from schemas.judge import JudgeAction
from schemas.playbook import PlaybookDefinition
from schemas.settings import JudgeSettings
from schemas.vocabulary import DIRECTIONS, Direction
from services.playbooks.measures import (
    RISK,
    Composition,
    Measure,
    alter,
    is_open,
    open_cells,
    same_rules,
    with_parameter,
)
from services.playbooks.trials import Evidence, OpenTrial
from services.statistics.calendar_units import after_units, unit_of_timeframe

MINIMUM_RISK_FRACTION = 0.0005
MAX_RISK_FRACTION = 0.02
MAX_RISK_RAISE = 2.0  # in one step
PROVEN = "proven in shadow"  # the reason of a promotion, and of a ban that its paper trades contradict


@dataclass(frozen=True)
class Situation:
    """What an action meets: active versions and compositions by playbook id, open trials, the present bar.

    Lives are counted in blocks of `block` (`gate.block`), whole ones after the present one.
    `proven` holds what the paper trades of a banned cell have shown where that is enough to lift the ban, by
    the version from before it and the cell.
    """

    active: Mapping[str, PlaybookDefinition]
    compositions: Mapping[str, Composition]
    trials: tuple[OpenTrial, ...]
    settings: JudgeSettings
    at: int
    timeframe: str
    block: str = ""
    proven: Mapping[tuple[str, str | None], Evidence] = field(default_factory=dict)

    def after(self, blocks: int) -> int:
        """The end of a life that begins now, ns."""
        return after_units(self.at, blocks, unit_of_timeframe(self.block, self.timeframe))


@dataclass(frozen=True)
class Lift:
    """Measures that end at once, and the trades that prove it."""

    measures: tuple[Measure, ...]
    evidence: Evidence
    reason: str


@dataclass(frozen=True)
class Limit:
    """Measures to lay over the active version at once."""

    measures: tuple[Measure, ...]


@dataclass(frozen=True)
class Trial:
    """A new baseline to try in shadow, and the measures that end with its promotion."""

    kind: Literal["candidate", "experiment"]
    baseline: PlaybookDefinition
    lifts: tuple[tuple[str, str], ...]
    directions: tuple[Direction, ...]
    regime_key: str | None
    expires_at: int


@dataclass(frozen=True)
class Refusal:
    """The bound that the present state sets."""

    code: str
    reason: str


Effect = Limit | Lift | Trial | Refusal | None


def demand_bounds(action: JudgeAction, active: Mapping[str, PlaybookDefinition]) -> None:
    """Refuse to go on with an action that the action contract should have refused.

    Raises:
        InvariantViolation: an unknown playbook or parameter, a value off the grid, or a risk fraction out
        of range.
    """
    if action.playbook_id is None:
        return
    if action.playbook_id not in active:
        hint = nearest(action.playbook_id, active)
        raise InvariantViolation(f"{action.kind}: no active playbook {action.playbook_id!r}.{hint}")
    definition = active[action.playbook_id]
    if action.parameter is not None:
        parameter = definition.parameters.get(action.parameter)
        if parameter is None or action.value not in parameter.grid:
            raise InvariantViolation(
                f"{action.kind}: {definition.id}.{action.parameter} = {action.value!r} is on no declared grid"
            )
    elif action.kind == "set_risk_fraction" and not 0 < (action.value or 0) <= MAX_RISK_FRACTION:
        raise InvariantViolation(
            f"risk fraction {action.value!r} is not above 0 and at most {MAX_RISK_FRACTION}"
        )


def effect_of(action: JudgeAction, now: Situation) -> Effect:
    """The effect of an action within bounds; None for a replan, which moves no version."""
    if action.playbook_id is None or action.kind == "replan":
        return None
    composition = now.compositions[action.playbook_id]
    if action.kind == "set_eligibility":
        return _ban(action, now) if not action.eligible else _unban(action, composition, now)
    if action.kind == "set_risk_fraction":
        return _risk(action, composition, now)
    if action.kind == "open_experiment":
        return _experiment(action, composition, now)
    return _candidate(action, _with_value(action, composition.baseline), now)


def _ban(action: JudgeAction, now: Situation) -> Limit | Refusal:
    definition, cell = now.active[str(action.playbook_id)], str(action.regime)
    sides = [side for side in _sides(action) if cell in open_cells(definition, side)]
    if not sides:
        return Refusal(
            "nothing_to_ban", f"{definition.id} is not eligible in {cell} {action.direction or ''}".rstrip()
        )
    expires_at = now.after(action.life_blocks or now.settings.action_life_blocks)
    limit = Limit(tuple(Measure((side, cell), None, now.at, expires_at, definition) for side in sides))
    return _floor(definition, limit, now) or limit


def _floor(definition: PlaybookDefinition, limit: Limit, now: Situation) -> Refusal | None:
    """Refuse a ban that closes a playbook when too few would stay open."""
    after = Composition(definition, limit.measures).definition(definition.version, definition.known_at)
    others = sum(
        is_open(version, now.timeframe) for version in now.active.values() if version.id != definition.id
    )
    least = now.settings.minimum_eligible_playbooks
    if is_open(after, now.timeframe) or others >= least:
        return None
    return Refusal("floor", f"this ban leaves {others} playbook(s) eligible, fewer than {least}")


def _unban(action: JudgeAction, composition: Composition, now: Situation) -> Lift | Trial | Refusal:
    """The end of a ban whose own ledger proves it; else a trial of the cell, whose trades have to."""
    bans = _bans_of(action, composition)
    if isinstance(bans, Refusal):
        return bans
    shown = [now.proven.get((measure.before.content_hash, str(action.regime))) for measure in bans]
    if shown[0] is not None and None not in shown:
        return Lift(bans, shown[0], PROVEN)
    return _candidate(action, composition.baseline, now, tuple(measure.key for measure in bans))


def _bans_of(action: JudgeAction, composition: Composition) -> tuple[Measure, ...] | Refusal:
    """The bans in force of the cell and the directions that an action names."""
    keys = {(side, str(action.regime)) for side in _sides(action)}
    bans = tuple(measure for measure in composition.measures if measure.key in keys)
    return bans or Refusal("not_banned", f"no lesson has banned {action.playbook_id} in {action.regime}")


def _risk(action: JudgeAction, composition: Composition, now: Situation) -> Limit | Trial | Refusal:
    definition, value = now.active[str(action.playbook_id)], float(action.value or 0)
    if value == definition.risk_fraction:
        return Refusal("no_change", f"{definition.id} risks {value:g} already")
    if value < definition.risk_fraction:
        expires_at = now.after(action.life_blocks or now.settings.action_life_blocks)
        return Limit((Measure(RISK, value, now.at, expires_at, definition),))
    lifts = (RISK,) if any(measure.key == RISK for measure in composition.measures) else ()
    return _candidate(action, alter(composition.baseline, risk_fraction=value), now, lifts)


def _experiment(action: JudgeAction, composition: Composition, now: Situation) -> Trial | Refusal:
    running = sum(trial.trial.kind == "experiment" for trial in now.trials)
    if running >= now.settings.max_open_experiments:
        return Refusal("too_many_experiments", f"{running} experiments are open, as many as are allowed")
    return _trial("experiment", action, _with_value(action, composition.baseline), now, ())


def _candidate(
    action: JudgeAction, baseline: PlaybookDefinition, now: Situation, lifts: tuple[tuple[str, str], ...] = ()
) -> Trial | Refusal:
    composition = now.compositions[baseline.id]
    if not lifts and same_rules(baseline, composition.baseline):
        return Refusal("no_change", f"{baseline.id} has {action.parameter} = {action.value:g} already")
    return _trial("candidate", action, baseline, now, lifts)


def _trial(
    kind: Literal["candidate", "experiment"],
    action: JudgeAction,
    baseline: PlaybookDefinition,
    now: Situation,
    lifts: tuple[tuple[str, str], ...],
) -> Trial | Refusal:
    """A trial, unless the same rules are tried already, as the same kind, with the same measures lifted."""
    for trial in now.trials:
        if trial.trial.kind == kind and trial.lifts == lifts and same_rules(trial.baseline, baseline):
            tried = f"{baseline.id} version {trial.trial.definition.version} tries this already"
            return Refusal("already_in_shadow", tried)
    expires_at = now.after(action.life_blocks or now.settings.shadow_life_blocks)
    sides = tuple(side for side in _sides(action) if side in baseline.rules)
    if not sides:
        return Refusal("no_such_direction", f"{baseline.id} has no {action.direction} rules")
    return Trial(kind, baseline, lifts, sides, action.regime, expires_at)


def _with_value(action: JudgeAction, baseline: PlaybookDefinition) -> PlaybookDefinition:
    if action.parameter is None or action.value is None:
        return baseline
    return with_parameter(baseline, action.parameter, action.value)


def _sides(action: JudgeAction) -> tuple[Direction, ...]:
    return DIRECTIONS if action.direction is None else (action.direction,)


def approved_composition(action: JudgeAction, now: Situation) -> Composition | Refusal:
    """The composition in force after the action, or the bound that the present state sets.

    It is in force at once, without a trial: a judge's actions prove themselves in shadow first, see
    `effect_of`; one that a person has approved acts as it says.
    """
    composition = now.compositions[str(action.playbook_id)]
    if action.kind == "set_eligibility" and action.eligible:
        bans = _bans_of(action, composition)
        return bans if isinstance(bans, Refusal) else composition.without(bans)
    if action.kind in ("set_threshold", "set_invalidation"):
        baseline = with_parameter(composition.baseline, str(action.parameter), float(action.value or 0.0))
        return Composition(baseline, composition.measures)
    effect = effect_of(action, now)
    if isinstance(effect, Refusal):
        return effect
    if isinstance(effect, Limit):
        return Composition(composition.baseline, (*composition.measures, *effect.measures))
    raised = alter(composition.baseline, risk_fraction=action.value)
    rest = tuple(measure for measure in composition.measures if measure.key != RISK)
    return Composition(raised, rest)
