"""The action contract: what a judge may change, within which bounds, and never below which floor.

A pure check of one action against the playbook versions in force and the actions accepted before it. A
refusal is a value with a stable code and the bound that was broken.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from schemas.errors import nearest
from schemas.judge import JudgeAction, RefusedAction
from schemas.playbook import Parameter, PlaybookDefinition
from schemas.settings import JudgeSettings
from services.playbooks.action_effects import MAX_RISK_FRACTION, MAX_RISK_RAISE, MINIMUM_RISK_FRACTION
from services.playbooks.measures import eligible_cells

Refusal = tuple[str, str]


@dataclass(frozen=True)
class ContractState:
    """What an action is checked against.

    Attributes:
        definitions: versions in force by playbook id.
        settings: bounds.
        open_experiments: experiments already running in shadow.
        accepted: actions of the same verdict that passed before this one.
    """

    definitions: Mapping[str, PlaybookDefinition]
    settings: JudgeSettings
    open_experiments: int = 0
    accepted: tuple[JudgeAction, ...] = ()


def check_action(action: JudgeAction, state: ContractState) -> RefusedAction | None:
    """None when the action keeps the contract, else the refusal.

    Codes: unknown_playbook, playbook_disabled, already_decided, unknown_regime, unknown_direction,
    not_eligible, already_set, floor, life_too_long, unknown_parameter, wrong_role, off_grid, unchanged,
    risk_out_of_bounds, too_many_experiments, claims_lower_exposure.
    """
    refusal = _check_playbook(action, state) or _check_kind(action, state) or _check_claim(action, state)
    return None if refusal is None else RefusedAction(action=action, code=refusal[0], reason=refusal[1])


def lowers_exposure(action: JudgeAction, definitions: Mapping[str, PlaybookDefinition]) -> bool:
    """Whether an action can only lower exposure: a ban, less risk, or a step declared to reduce it."""
    definition = definitions.get(action.playbook_id or "")
    if action.kind == "set_eligibility":
        return action.eligible is False
    if definition is None or action.value is None:
        return False
    if action.kind == "set_risk_fraction":
        return action.value < definition.risk_fraction
    parameter = definition.parameters.get(action.parameter or "")
    if parameter is None or action.kind not in ("set_threshold", "set_invalidation"):
        return False
    direction = {"up": 1.0, "down": -1.0, "none": 0.0}[parameter.risk_reducing]
    return (action.value - parameter.value) * direction > 0.0


def eligible_playbooks(
    definitions: Mapping[str, PlaybookDefinition], actions: Sequence[JudgeAction] = ()
) -> tuple[str, ...]:
    """Enabled playbooks that keep an open direction and regime cell after these actions, in name order."""
    names = []
    for name, definition in sorted(definitions.items()):
        bans = [item for item in actions if item.kind == "set_eligibility" and item.playbook_id == name]
        if definition.enabled and _open_cells(definition, bans):
            names.append(name)
    return tuple(names)


def _open_cells(definition: PlaybookDefinition, actions: Sequence[JudgeAction]) -> set[tuple[str, str]]:
    cells: set[tuple[str, str]] = {
        (direction, cell)
        for direction in definition.eligibility
        for cell in eligible_cells(definition, direction)
    }
    for action in actions:
        directions = [action.direction] if action.direction else list(definition.eligibility)
        touched = {(direction, str(action.regime)) for direction in directions}
        cells = cells | touched if action.eligible else cells - touched
    return cells


def _check_playbook(action: JudgeAction, state: ContractState) -> Refusal | None:
    if action.playbook_id is None:
        return None
    definition = state.definitions.get(action.playbook_id)
    if definition is None:
        hint = nearest(action.playbook_id, state.definitions)
        return "unknown_playbook", f"no playbook {action.playbook_id!r} is in force.{hint}"
    if not definition.enabled:
        return "playbook_disabled", f"playbook {action.playbook_id!r} is disabled"
    if any(_same_target(action, item) for item in state.accepted):
        return "already_decided", f"this verdict already changes {action.kind} of {action.playbook_id!r}"
    return None


def _same_target(first: JudgeAction, second: JudgeAction) -> bool:
    names = ("kind", "playbook_id", "regime", "direction", "parameter")
    return all(getattr(first, name) == getattr(second, name) for name in names)


def _check_kind(action: JudgeAction, state: ContractState) -> Refusal | None:
    checks: dict[str, Callable[[JudgeAction, ContractState], Refusal | None]] = {
        "set_eligibility": _check_eligibility,
        "set_threshold": _check_parameter,
        "set_invalidation": _check_parameter,
        "set_risk_fraction": _check_risk,
        "open_experiment": _check_experiment,
        "replan": lambda action, state: None,
    }
    return checks[action.kind](action, state)


def _definition(action: JudgeAction, state: ContractState) -> PlaybookDefinition:
    return state.definitions[str(action.playbook_id)]


def _check_eligibility(action: JudgeAction, state: ContractState) -> Refusal | None:
    definition, regime = _definition(action, state), str(action.regime)
    if action.direction is not None and action.direction not in definition.eligibility:
        return "unknown_direction", f"{definition.id!r} does not trade {action.direction!r}"
    directions = [action.direction] if action.direction else list(definition.eligibility)
    declared = {cell for name in directions for cell in eligible_cells(definition, name, with_banned=True)}
    if regime not in declared:
        return (
            "not_eligible",
            f"{regime!r} is no declared regime of {definition.id!r}.{nearest(regime, declared)}",
        )
    is_open = {cell for name in directions for cell in eligible_cells(definition, name)}
    if (regime in is_open) == bool(action.eligible):
        return "already_set", f"{definition.id!r} already has eligible={action.eligible} in {regime!r}"
    return _check_life(action, state, measure=not action.eligible) or _check_floor(action, state)


def _check_life(action: JudgeAction, state: ContractState, *, measure: bool) -> Refusal | None:
    limit = state.settings.action_life_blocks if measure else state.settings.shadow_life_blocks
    if action.life_blocks is not None and action.life_blocks > limit:
        return "life_too_long", f"a life of {action.life_blocks} blocks is above the limit {limit}"
    return None


def _check_floor(action: JudgeAction, state: ContractState) -> Refusal | None:
    before = eligible_playbooks(state.definitions, state.accepted)
    after = eligible_playbooks(state.definitions, (*state.accepted, action))
    floor = state.settings.minimum_eligible_playbooks
    if len(after) < len(before) and len(after) < floor:
        return "floor", f"only {len(after)} playbooks would stay eligible, at least {floor} must"
    return None


def _parameter(action: JudgeAction, state: ContractState) -> tuple[Parameter | None, Refusal | None]:
    definition = _definition(action, state)
    parameter = definition.parameters.get(action.parameter or "")
    if parameter is None:
        hint = nearest(action.parameter or "", definition.parameters)
        return None, ("unknown_parameter", f"{definition.id!r} has no parameter {action.parameter!r}.{hint}")
    if action.value not in parameter.grid:
        allowed = list(parameter.grid)
        return None, ("off_grid", f"{action.parameter} {action.value!r} is not on its grid {allowed}")
    if action.value == parameter.value:
        return None, ("unchanged", f"{action.parameter} is {action.value!r} already")
    return parameter, None


def _check_parameter(action: JudgeAction, state: ContractState) -> Refusal | None:
    parameter, refusal = _parameter(action, state)
    if parameter is None:
        return refusal
    if action.kind != f"set_{parameter.role}":
        return "wrong_role", f"{action.parameter} is a {parameter.role}: use set_{parameter.role}"
    return _check_life(action, state, measure=False)


def _check_risk(action: JudgeAction, state: ContractState) -> Refusal | None:
    definition = _definition(action, state)
    value, ceiling = action.value or 0.0, min(MAX_RISK_FRACTION, definition.risk_fraction * MAX_RISK_RAISE)
    if value == definition.risk_fraction:
        return "unchanged", f"risk of {definition.id!r} is {value!r} already"
    if not MINIMUM_RISK_FRACTION <= value <= ceiling:
        return "risk_out_of_bounds", f"risk {value!r} lies outside [{MINIMUM_RISK_FRACTION}, {ceiling}]"
    return _check_life(action, state, measure=value < definition.risk_fraction)


def _check_experiment(action: JudgeAction, state: ContractState) -> Refusal | None:
    running = state.open_experiments + sum(item.kind == "open_experiment" for item in state.accepted)
    if running >= state.settings.max_open_experiments:
        return (
            "too_many_experiments",
            f"{running} experiments are open, the limit is {state.settings.max_open_experiments}",
        )
    return _check_life(action, state, measure=False) or _parameter(action, state)[1]


def _check_claim(action: JudgeAction, state: ContractState) -> Refusal | None:
    if action.lowers_exposure and not lowers_exposure(action, state.definitions):
        return "claims_lower_exposure", f"{action.kind} claims to lower exposure and does not"
    return None
