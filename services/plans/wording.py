"""A step of a plan in words: what has to hold before it, what it does, how it is undone. Pure."""

from dataclasses import dataclass

from schemas.judge import JudgeAction
from schemas.plan import RollbackAction
from schemas.playbook import PlaybookDefinition

NO_UNDO = "A policy that is out of force is not frozen again: the next evaluation makes another."


@dataclass(frozen=True)
class Words:
    """The three sentences of a step."""

    precondition: str
    effect: str
    undo: str


def words_of(action: JudgeAction | RollbackAction, before: PlaybookDefinition | None) -> Words:
    """The sentences of an action on a playbook as it stands before it."""
    if before is None:
        return Words(
            "No evaluation is out.", "Retires every frozen policy: each symbol is evaluated anew.", NO_UNDO
        )
    name, number = before.id, before.version
    undo = f"`thinktwice plans rollback PLAN` returns {name} to version {number}."
    if isinstance(action, JudgeAction) and action.kind == "open_experiment":
        undo = "The experiment ends with its life and never becomes active by itself."
    return Words(f"{name} version {number} is in force.", _effect(action, before), undo)


def folder_words(folder: str) -> Words:
    """The sentences of the last step of a plan for a run that is over."""
    return Words(
        f"{folder} is free, or holds what was written there before.",
        f"Writes the playbooks that result to {folder}.",
        f"`thinktwice plans rollback PLAN` writes the playbooks of before to {folder}.",
    )


def _effect(action: JudgeAction | RollbackAction, before: PlaybookDefinition) -> str:
    name = before.id
    if isinstance(action, RollbackAction):
        return f"Returns {name} to an earlier version, {(action.version_hash or 'the last other one')[:12]}."
    if action.kind == "set_eligibility":
        side = f" {action.direction}" if action.direction else ""
        does = "Trades" if action.eligible else "Bans"
        return f"{does} {name}{side} in {action.regime}{' again' if action.eligible else ''}."
    if action.kind == "set_risk_fraction":
        return f"Risks {action.value:.4%} of equity a trade of {name} instead of {before.risk_fraction:.4%}."
    parameter = before.parameters.get(action.parameter or "")
    was = "" if parameter is None else f" instead of {parameter.value:g}"
    if action.kind == "open_experiment":
        return f"Tries {action.parameter} {action.value:g} of {name} on paper{was}."
    return f"Trades {name} with {action.parameter} {action.value:g}{was}."
