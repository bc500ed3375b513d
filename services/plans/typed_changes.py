"""A typed change as an action of the contract: the form of its kind, with what the settings add. Pure.

Only the fields of its kind are checked here. What an action may change, the grid of a value and the bounds of
a risk are the action contract's, which says its refusal once, with its code.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from schemas.errors import ConfigError
from schemas.judge import JudgeAction
from schemas.plan import CHANGE_FORMS, ChangeKind, Proposed, RollbackAction, fields_of
from schemas.playbook import PlaybookDefinition
from schemas.settings import JudgeSettings
from services.model_calls.reply_text import first_problem
from services.slow_loop.action_contract import lowers_exposure


def propose_change(
    kind: ChangeKind,
    fields: Mapping[str, Any],
    definitions: Mapping[str, PlaybookDefinition],
    judge: JudgeSettings,
    reason: str,
) -> Proposed:
    """The action of a typed change; where its kind has a life and none is given, it is that of the settings.

    Args:
        kind: of the action.
        fields: of the action contract; None where one is not given.
        definitions: versions in force by playbook id.
        judge: how long a ban or a trial lives.
        reason: why a person wants it.

    Raises:
        ConfigError: the kind has no such field, one is missing, or a value is of another type.
    """
    given = {name: value for name, value in fields.items() if value is not None}
    if "life_blocks" in fields_of(kind):
        is_ban = given.get("eligible") is False
        life = judge.action_life_blocks if is_ban else judge.shadow_life_blocks
        given = {"life_blocks": life} | given
    foreign = [name for name in given if name not in fields_of(kind)]
    missing = [name for name in CHANGE_FORMS[kind].needed if name not in given]
    if foreign or missing:
        wrong = f"has no {', '.join(foreign)}" if foreign else f"needs {', '.join(missing)}"
        raise ConfigError(f"{kind} {wrong}: it takes {', '.join(fields_of(kind)) or 'nothing'}")
    if kind == "rollback":
        return Proposed(RollbackAction(playbook_id=given["playbook_id"], reason=reason))
    try:
        action = JudgeAction.model_validate({"kind": kind, **given, "reason": reason})
    except ValidationError as error:
        raise ConfigError(f"{kind}: {first_problem(error)}") from error
    lowers = lowers_exposure(action, definitions)
    return Proposed(action.model_copy(update={"lowers_exposure": lowers}) if lowers else action)
