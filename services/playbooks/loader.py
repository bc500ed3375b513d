"""Playbook files into checked definitions: TOML, one playbook a file, one clear line for whatever is wrong.

Every rule must parse for every value of every parameter's grid, so that no lesson can later move a playbook
to a value that does not work. Any bytes give definitions or a `ConfigError`; nothing else is raised.

Pydantic's errors become words: unknown and missing keys get the nearest name that the contract has at
that place.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from schemas.contract_keys import Steps, choices, known_keys
from schemas.errors import ConfigError, RuleError, nearest
from schemas.playbook import Parameter, PlaybookDefinition
from schemas.timeframes import timeframe_problem
from schemas.vocabulary import Trend, VolatilityBand
from services.playbooks.rendering import IN_POSITION, KIND_OF_ROLE, placeholders, render_text, rule_texts
from services.text.given_files import parse_toml, read_given
from trading_core.rules.grammar import parse
from trading_core.rules.programs import compile_program
from trading_core.rules.tree import refuse_position

EMBEDDED = Path(__file__).parent / "definitions"
ADVICE = "or leave runtime.playbooks unset to use the embedded ones"
MAX_BYTES = 64_000
MAX_INTEGER = 2**53
MAX_COMBINATIONS = 1_000  # of one rule: a plan that uses none of them is compared with each
NAME = re.compile(r"[a-z][a-z0-9_]*")
CELLS = tuple(f"{trend}/{volatility}" for trend in Trend for volatility in VolatilityBand)


def load_playbooks(source: Path | None = None) -> tuple[PlaybookDefinition, ...]:
    """Definitions of every `*.toml` of a folder, of one file or of a name, by id; None: the embedded ones.

    A name is that of a folder or a file of ours; what lies at a path of that name goes before it.

    Raises:
        ConfigError: naming file, field and reason; also for a missing or empty folder and an id given twice.
    """
    place = EMBEDDED if source is None else _place(source)
    if place.is_file():
        return (read_playbook(place),)
    found: dict[str, tuple[Path, PlaybookDefinition]] = {}
    for path in sorted(place.glob("*.toml")):
        definition = read_playbook(path)
        if definition.id in found:
            other = found[definition.id][0].name
            raise _bad(
                path, "id", f"{definition.id!r} is the id of {other!r} already: give each file its own"
            )
        found[definition.id] = (path, definition)
    if not found:
        raise ConfigError(f"playbook folder {str(place)!r} holds no *.toml file: add one, {ADVICE}")
    return tuple(found[name][1] for name in sorted(found))


def _place(source: Path) -> Path:
    """The folder or file that a path or a name of ours leads to.

    Raises:
        ConfigError: none is there.
    """
    if source.exists():
        return source
    ours = {path.stem: path for path in sorted(EMBEDDED.rglob("*.toml"))}
    ours |= {path.name: path for path in sorted(EMBEDDED.iterdir()) if path.is_dir()}
    if (name := str(source)) in ours:
        return ours[name]
    raise ConfigError(
        f"playbooks {name!r} is no folder, file or playbook of ours: create it, take one of "
        f"{', '.join(ours)}, {ADVICE}.{nearest(name, ours)}"
    )


def read_playbook(path: Path) -> PlaybookDefinition:
    """The definition in one file.

    Raises:
        ConfigError: naming file, field and reason.
    """
    try:
        data = read_given(path, error=ConfigError)
    except OSError as error:
        raise ConfigError(f"playbook file {str(path)!r} cannot be read: {error.strerror}") from error
    return parse_playbook(data, path)


@lru_cache(maxsize=64)
def parse_playbook(data: bytes, path: Path) -> PlaybookDefinition:
    """The definition in the bytes of a file, kept for the next run; `path` is for messages only.

    Raises:
        ConfigError: naming file, field and reason.
    """
    document = _document(data, path)
    for field, value in _leaves(document):
        _check_leaf(path, field, value)
    try:
        definition = PlaybookDefinition.model_validate_json(json.dumps(document), strict=True)
    except ValidationError as error:
        raise _bad(path, *explain(document, error)) from error
    if definition.known_at is not None:
        raise _bad(path, "known_at", "is set by the program, never in a file: remove this line")
    check_definition(definition, path)
    return definition


def _bad(path: Path, field: str, reason: str) -> ConfigError:
    message = f"playbook file {path.name!r}, {field}: {reason}"
    return ConfigError(message, file=str(path), field=field, reason=reason)


def _document(data: bytes, path: Path) -> dict[str, Any]:
    if len(data) > MAX_BYTES:
        raise _bad(path, "the file", f"has {len(data)} bytes, more than {MAX_BYTES}: split it")
    try:
        return parse_toml(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise _bad(path, "the file", f"is not UTF-8 at byte {error.start}: save it as UTF-8") from error
    except ValueError as error:
        raise _bad(path, "the file", f"is not TOML: {error}") from error


def _leaves(value: Any, field: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, f"{field}.{key}" if field else str(key))
    elif isinstance(value, list):
        for position, item in enumerate(value):
            yield from _leaves(item, f"{field}[{position}]")
    else:
        yield field, value


def _check_leaf(path: Path, field: str, value: Any) -> None:
    if isinstance(value, str | bool):
        return
    if not isinstance(value, int | float):
        raise _bad(path, field, f"a {type(value).__name__} has no place in a playbook: use text or a number")
    if not math.isfinite(value) or abs(value) > MAX_INTEGER:
        raise _bad(path, field, f"{value!r} is not a finite number of ordinary size")


def check_definition(definition: PlaybookDefinition, path: Path) -> None:
    """Refuse a definition whose shape is right but which could not be traded; `path` is for messages only.

    Raises:
        ConfigError: its context names `field` and `reason`.
    """
    for name in definition.timeframes:
        if (reason := timeframe_problem(name)) is not None:
            raise _bad(path, "timeframes", reason)
    for direction, eligibility in definition.eligibility.items():
        for cell in eligibility.banned:
            if cell not in CELLS:
                reason = f"{cell!r} is not a trend/volatility cell.{nearest(cell, CELLS)}"
                raise _bad(path, f"eligibility.{direction}.banned", reason)
    _check_parameters(path, definition)
    for direction, rules in definition.rules.items():
        for role, text in rule_texts(rules).items():
            try:
                _check_rule(role, text, definition.parameters)
            except (ConfigError, RuleError) as error:
                raise _bad(path, f"rules.{direction}.{role}", str(error)) from error


def _check_parameters(path: Path, definition: PlaybookDefinition) -> None:
    texts = [text for rules in definition.rules.values() for text in rule_texts(rules).values()]
    used = {name for text in texts for name in placeholders(text)}
    for name in definition.parameters:
        field = f"parameters.{name}"
        if not NAME.fullmatch(name):
            raise _bad(path, field, "use lower case letters, digits and _ in a name")
        if name not in used:
            raise _bad(path, field, f"no rule uses {{{name}}}: use it or remove it.{nearest(name, used)}")


def _check_rule(role: str, text: str, parameters: Mapping[str, Parameter]) -> None:
    """The rule parses, and is of its role's kind, for every value on every grid it uses."""
    values = {name: parameter.value for name, parameter in parameters.items()}
    names = [name for name in sorted(set(placeholders(text))) if name in parameters]
    combinations = math.prod(len(parameters[name].grid) for name in names)
    if combinations > MAX_COMBINATIONS:
        raise ConfigError(
            f"the grids of {', '.join(names)} make {combinations} rules, at most {MAX_COMBINATIONS} may be: "
            "shorten a grid, or write a value instead of a parameter"
        )
    variants = [values, *(values | {name: value} for name in names for value in parameters[name].grid)]
    for rendered in dict.fromkeys(render_text(text, variant) for variant in variants):
        rule = parse(rendered)
        kind = rule.kind
        if role not in IN_POSITION:
            refuse_position(rule.position)
        elif rule.position:
            compile_program(rule, lambda _: 0, lambda _: 0)  # it refuses what the kernel cannot carry out
        if kind != KIND_OF_ROLE[role]:
            raise ConfigError(f"must be a {KIND_OF_ROLE[role]} rule, but {rendered!r} is a {kind} rule")


def explain(document: dict[str, Any], error: ValidationError) -> tuple[str, str]:
    """Dotted field and reason of the first problem of `document`; the reason says how many more there are."""
    problems = error.errors(include_url=False)
    first = problems[0]
    steps = tuple(step for step in first["loc"] if step != "[key]")
    others = len({problem["loc"] for problem in problems}) - 1
    more = f" ({others} more in this file)" if others else ""
    return ".".join(map(str, steps)) or "the file", _reason(document, steps, first) + more


def _reason(document: dict[str, Any], steps: Steps, problem: ErrorDetails) -> str:
    if problem["type"] == "extra_forbidden":
        known = _list_keys(steps[:-1])
        return "unknown key." + (nearest(str(steps[-1]), known) or f" Known here: {', '.join(known)}.")
    if problem["type"] == "missing":
        return "missing: every playbook needs it." + _misspelt(document, steps)
    reason, given = problem["msg"].removeprefix("Value error, "), problem["input"]
    if problem["type"] == "value_error" or isinstance(given, dict):
        return reason
    return f"{reason}, not {_short(given)}.{nearest(str(given), choices(problem))}"


def _short(given: Any) -> str:
    text = repr(given)
    return text if len(text) <= 80 else text[:77] + "..."


def _misspelt(document: dict[str, Any], steps: Steps) -> str:
    """A hint when a key beside the missing one looks like it."""
    inside: Any = document
    for step in steps[:-1]:
        inside = inside[step]
    known = _list_keys(steps[:-1])
    return nearest(str(steps[-1]), [key for key in inside if key not in known]).replace(
        "Did you mean", "Is it"
    )


def _list_keys(steps: Steps) -> tuple[str, ...]:
    """Keys of a playbook file; what its loader sets is none."""
    return tuple(name for name in known_keys(PlaybookDefinition, steps) if name != "known_at")
