"""A person's words in one of a few forms, read into typed actions; what has no form is told, never guessed.

Only the form and the names are checked here. What an action may change, the grid of a value and the bounds of
a risk are the action contract's, which says its refusal once, with its code.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from schemas.errors import ConfigError, nearest
from schemas.judge import JudgeAction
from schemas.plan import MOST_ACTIONS, RollbackAction
from schemas.playbook import PlaybookDefinition
from schemas.settings import JudgeSettings
from schemas.vocabulary import Trend, VolatilityBand
from services.model_calls.quoting import visible
from services.model_calls.reply_text import quote_beginning
from services.plans.drafting import Proposed
from services.playbooks.measures import eligible_cells
from services.slow_loop.action_contract import lowers_exposure

FORMS = (
    "ban|allow PLAYBOOK in TREND/VOLATILITY [long|short]",
    "set PARAMETER of PLAYBOOK to VALUE",
    "set the risk of PLAYBOOK to X %|half|double",
    "retire PLAYBOOK",
    "roll back PLAYBOOK",
    "replan",
)
SCALES = {"half": 0.5, "double": 2.0}
CHECKPOINTS = ("checkpoint", "then ask")
LONGEST_TEXT = 8_000
LONGEST_REASON = 300
SHOWN = 120

NAME = r"""["'`‘’“”]?(?P<{}>[\w.-]+)["'`‘’“”]?"""
PLAYBOOK = NAME.format("playbook")
VALUE = r"(?P<value>\S+?)"
CELL = r"""["'`‘’“”]?(?P<trend>\w+)\s*/\s*(?P<volatility>\w+)["'`‘’“”]?"""
NUMBER = re.compile(r"[+-]?\d{1,15}(?:\.\d{1,15})?", re.ASCII)
ITEM = re.compile(r"(?:[-*•]|\d{1,2}[.)])\s+")  # the mark of a list
CELLS = tuple(f"{trend}/{volatility}" for trend in Trend for volatility in VolatilityBand)


class UnreadableText(ConfigError):
    """A text that has none of the forms."""


@dataclass(frozen=True)
class _Statement:
    """One statement with what it is read against."""

    said: str
    reason: str
    definitions: Mapping[str, PlaybookDefinition]
    judge: JudgeSettings

    def playbook(self, found: re.Match[str]) -> PlaybookDefinition:
        """The playbook that a statement names.

        Raises:
            ConfigError: none is in force under this name.
        """
        name = found["playbook"].casefold()
        if name not in self.definitions:
            known = nearest(name, self.definitions) or f" There are {', '.join(sorted(self.definitions))}."
            raise self.fault(f"no playbook {name!r} is in force.{known}")
        return self.definitions[name]

    def fault(self, what: str) -> ConfigError:
        """An error that names the statement."""
        return ConfigError(f"{quote_beginning(self.said, SHOWN)}: {what}")


def read_text(
    text: str, definitions: Mapping[str, PlaybookDefinition], judge: JudgeSettings, reason: str | None = None
) -> tuple[Proposed, ...]:
    """The actions that a text asks for, in its order.

    Statements stand on lines of their own or between semicolons; a checkpoint marks the one before it.

    Args:
        text: what was said, at most 8,000 characters.
        definitions: versions in force by playbook id.
        judge: how long a ban or a lifted ban lives.
        reason: what stands as the reason of each action; None: its own statement.

    Raises:
        UnreadableText: a statement has none of the forms.
        ConfigError: the text is empty, too long or holds characters that cannot be seen, or a statement names
            no playbook, parameter, cell or value.
    """
    actions: list[Proposed] = []
    for said in _statements(text):
        if said.casefold() in CHECKPOINTS:
            if not actions or actions[-1].checkpoint:
                raise ConfigError(f"{said!r} stands behind no action: put it between two of them")
            actions[-1] = Proposed(actions[-1].action, checkpoint=True)
            continue
        because = visible(" ".join((reason or said).split()))[:LONGEST_REASON]
        actions += map(Proposed, _actions(_Statement(said, because, definitions, judge)))
    if actions and actions[-1].checkpoint:
        raise ConfigError("nothing stands behind the last checkpoint: put it between two actions")
    if len(actions) > MOST_ACTIONS:
        raise ConfigError(f"the text asks for {len(actions)} actions, at most {MOST_ACTIONS}: make two plans")
    return tuple(actions)


def has_form(text: str) -> bool:
    """Whether every statement of a text has one of the forms; nothing of it is looked up."""
    try:
        said = [piece for piece in _statements(text) if piece.casefold() not in CHECKPOINTS]
    except ConfigError:
        return False
    return bool(said) and all(
        any(form.fullmatch(piece) for form in (RETIRE, *(form for form, _ in READERS))) for piece in said
    )


def check_characters(text: str) -> str:
    """The text with one kind of line end and without blanks around it.

    Raises:
        ConfigError: it is empty, too long, or holds characters that cannot be seen.
    """
    if len(text) > LONGEST_TEXT:
        raise ConfigError(f"the text has {len(text):,} characters, at most {LONGEST_TEXT:,}: shorten it")
    plain = text.replace("\r\n", "\n").replace("\t", " ").strip()
    if not plain:
        raise ConfigError(f"the text is empty: give {_forms()}")
    if visible(plain, lines=True) != plain:
        unseen = next(c for c in plain if c != "\n" and visible(c) != c)
        raise ConfigError(f"the text holds '{visible(unseen)}', which cannot be seen: write it without")
    return plain


def _statements(text: str) -> list[str]:
    pieces = re.split(r"[;\n]", check_characters(text))
    found = [ITEM.sub("", piece.strip(), count=1).strip().removesuffix(".").rstrip() for piece in pieces]
    said = [piece for piece in found if piece]
    if not said:
        raise UnreadableText(f"{quote_beginning(text, SHOWN)} asks for nothing: give {_forms()}")
    return said


def _actions(statement: _Statement) -> Sequence[JudgeAction | RollbackAction]:
    found = RETIRE.fullmatch(statement.said)
    if found is not None:
        return _retirement(found, statement)
    for form, build in READERS:
        found = form.fullmatch(statement.said)
        if found is not None:
            return (build(found, statement),)
    raise UnreadableText(f"{quote_beginning(statement.said, SHOWN)} has no form: give {_forms()}")


def _forms() -> str:
    return f"{', '.join(f'`{form}`' for form in FORMS)}; `{CHECKPOINTS[0]}` between two of them asks again"


def _mark_exposure(statement: _Statement, **fields: object) -> JudgeAction:
    """An action that says whether it lowers exposure."""
    action = JudgeAction.model_validate({**fields, "reason": statement.reason})
    lowers = lowers_exposure(action, statement.definitions)
    return action.model_copy(update={"lowers_exposure": lowers}) if lowers else action


def _eligibility(found: re.Match[str], statement: _Statement) -> JudgeAction:
    playbook, cell = statement.playbook(found), f"{found['trend']}/{found['volatility']}".casefold()
    if cell not in CELLS:
        known = (
            nearest(cell, CELLS)
            or f" Trends are {', '.join(Trend)}; volatilities {', '.join(VolatilityBand)}."
        )
        raise statement.fault(f"{cell!r} is no cell TREND/VOLATILITY.{known}")
    is_allowed = found["verb"].casefold() == "allow"
    return _mark_exposure(
        statement,
        kind="set_eligibility",
        playbook_id=playbook.id,
        regime=cell,
        direction=found["direction"] and found["direction"].casefold(),
        eligible=is_allowed,
        life_blocks=statement.judge.shadow_life_blocks if is_allowed else statement.judge.action_life_blocks,
    )


def _retirement(found: re.Match[str], statement: _Statement) -> Sequence[JudgeAction]:
    """A ban in every regime where the playbook may trade still: no more of it is ever proposed.

    Raises:
        ConfigError: it is banned everywhere already.
    """
    playbook = statement.playbook(found)
    cells = eligible_cells(playbook)
    if not cells:
        raise statement.fault(f"{playbook.id!r} is banned in every regime already")
    return [
        _mark_exposure(
            statement,
            kind="set_eligibility",
            playbook_id=playbook.id,
            regime=cell,
            eligible=False,
            life_blocks=statement.judge.action_life_blocks,
        )
        for cell in cells
    ]


def _risk(found: re.Match[str], statement: _Statement) -> JudgeAction:
    playbook, said = statement.playbook(found), found["value"]
    number = said.removesuffix("%").rstrip()
    if said.casefold() in SCALES:
        value = playbook.risk_fraction * SCALES[said.casefold()]
        return _mark_exposure(statement, kind="set_risk_fraction", playbook_id=playbook.id, value=value)
    if number == said or NUMBER.fullmatch(number) is None:
        raise statement.fault(f"{said!r} is no risk: write it in percent of equity, as `0.5 %`")
    return _mark_exposure(
        statement, kind="set_risk_fraction", playbook_id=playbook.id, value=float(Decimal(number) / 100)
    )


def _parameter(found: re.Match[str], statement: _Statement) -> JudgeAction:
    playbook, said = statement.playbook(found), found["value"]
    names = {name.casefold(): name for name in playbook.parameters}
    name = names.get(found["parameter"].casefold())
    if name is None:
        known = nearest(found["parameter"], names.values()) or f" It has {', '.join(names.values())}."
        raise statement.fault(f"{playbook.id!r} has no parameter {found['parameter']!r}.{known}")
    parameter = playbook.parameters[name]
    if NUMBER.fullmatch(said) is None:
        raise statement.fault(f"{said!r} is no number: {name} takes one of {list(parameter.grid)}")
    return _mark_exposure(
        statement,
        kind=f"set_{parameter.role}",
        playbook_id=playbook.id,
        parameter=name,
        value=float(said),
    )


def _rollback(found: re.Match[str], statement: _Statement) -> RollbackAction:
    return RollbackAction(playbook_id=statement.playbook(found).id, reason=statement.reason)


def _form(expression: str) -> re.Pattern[str]:
    return re.compile(expression.replace(" ", r"\s+"), re.IGNORECASE)


STOP = r"(?:disable|suspend|pause|deactivate|(?:stop|quit) (?:trading|using)|(?:switch|turn) off)"
RETIRE = _form(
    rf"(?:retire|{STOP}) (?:the )?(?:playbook |strategy )?{PLAYBOOK}(?: (?:everywhere|altogether))?"
)
READERS: tuple[
    tuple[re.Pattern[str], Callable[[re.Match[str], _Statement], JudgeAction | RollbackAction]], ...
] = (
    (_form(rf"(?P<verb>ban|{STOP}|allow) {PLAYBOOK} in {CELL}(?: (?P<direction>long|short))?"), _eligibility),
    (_form(rf"set (?:the )?risk of {PLAYBOOK} to (?P<value>.+)"), _risk),
    (_form(rf"set (?:the )?{NAME.format('parameter')} of {PLAYBOOK} to {VALUE}"), _parameter),
    (_form(rf"roll(?: |-|)back {PLAYBOOK}"), _rollback),
    (_form("replan"), lambda found, statement: _mark_exposure(statement, kind="replan")),
)
