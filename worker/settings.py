"""Resolve the configuration once, at the start: defaults, one TOML file, the environment, then flags.

Environment names are `THINKTWICE_SECTION__KEY` (`THINKTWICE_SEED` for the seed). Whatever names no setting is
refused with the nearest name; whatever has the wrong type is refused with its key, its value and where it
came from. No file is read unasked.
"""

import json
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, time
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, get_args, get_origin

from pydantic import TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from schemas.contract import Contract
from schemas.errors import ConfigError, nearest
from schemas.settings import Settings
from services.text.given_files import parse_toml, read_text
from worker.secrets.redaction import holds_password, masked_addresses
from worker.secrets.secrets import (
    OURS,
    STORE_ADDRESS,
    STORE_PASSWORD,
    is_secret_name,
    secret,
    where_secrets_belong,
    with_password,
)

PREFIX = "THINKTWICE_"
NOT_SETTINGS = frozenset({"THINKTWICE_CACHE_DIR"}) | OURS
DEFAULT = "default"
BLOCKS = "it counts blocks of calendar time (gate.block) and no longer bars"
RENAMED = {  # settings that are gone: the one in their place, and what is other about it
    "judge.shadow_ttl_bars": ("judge.shadow_life_blocks", BLOCKS),
    "judge.action_ttl_bars": ("judge.action_life_blocks", BLOCKS),
    "gate.bet_unit": (
        "gate.block",
        "evidence is counted in blocks of calendar time: day, week, month or quarter",
    ),
}


@dataclass(frozen=True)
class ResolvedSettings:
    """The tree in force. `origins` says for each key that is not a default where its value came from."""

    settings: Settings
    origins: dict[str, str]

    def rows(self) -> Iterator[tuple[str, Any, str]]:
        """(key, value, origin) of every setting, in the order of the tree."""
        payload = self.settings.payload()
        for key in FIELDS:
            value: Any = payload
            for name in key.split("."):
                value = value[name]
            yield key, value, self.origins.get(key, DEFAULT)


def _fields(tree: type[Contract], prefix: str = "") -> dict[str, FieldInfo]:
    found: dict[str, FieldInfo] = {}
    for attribute, field in tree.model_fields.items():
        name, section = field.alias or attribute, field.annotation
        if isinstance(section, type) and issubclass(section, Contract):
            found |= _fields(section, f"{prefix}{name}.")
        else:
            found[prefix + name] = field
    return found


FIELDS: dict[str, FieldInfo] = _fields(Settings)
SECTIONS = tuple(sorted({key.split(".")[0] for key in FIELDS if "." in key}))
TABLES = frozenset(key.rpartition(".")[0] for key in FIELDS if "." in key)


def _variable(key: str) -> str:
    """The environment variable of a setting."""
    return PREFIX + key.upper().replace(".", "__")


ENVIRONMENT = {_variable(key): key for key in FIELDS}
GONE = {_variable(key): key for key in RENAMED}


def load_settings(
    config: Path | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    flags: Mapping[str, tuple[str, Any]] | None = None,
    word: str = "flag",
) -> ResolvedSettings:
    """The settings in force.

    Args:
        config: TOML file with one table per section; None reads none.
        environment: None for the environment of the process.
        flags: key -> (option as typed, value); a value of None was not given.
        word: what such an option is called in a message.

    Raises:
        ConfigError: an unreadable file, an unknown name, or a value that does not fit.
    """
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    given = os.environ if environment is None else environment
    layers = (
        _from_file(config),
        _from_environment(given),
        _from_flags(flags or {}, word),
    )
    for layer in layers:
        for key, value, origin in layer:
            values[key], origins[key] = _check(key, value, origin), origin
    password, address = secret(STORE_PASSWORD, given), ENVIRONMENT[STORE_ADDRESS]
    if password is not None and address in values:
        values[address] = with_password(values[address], password)
    return ResolvedSettings(_tree(values, origins), origins)


def _from_file(config: Path | None) -> Iterator[tuple[str, Any, str]]:
    if config is None:
        return
    origin = f"file {config}"
    yield from _leaves(_read_toml(config), "", origin)


def _leaves(table: Mapping[str, Any], prefix: str, origin: str) -> Iterator[tuple[str, Any, str]]:
    for name, value in table.items():
        key = f"{prefix}{name}"
        if key not in TABLES:
            yield _find_key(key, origin), _without_secret(key, value, origin), origin
        elif isinstance(value, dict):
            yield from _leaves(value, f"{key}.", origin)
        else:
            raise ConfigError(f"{origin}: {key!r} is a section: write [{key}] with its keys below")


def _without_secret(key: str, value: Any, origin: str) -> Any:
    if isinstance(value, str) and holds_password(value):
        raise ConfigError(
            f"{origin}: {key} holds a password: take it out, and give the address in {STORE_ADDRESS}, or in "
            f"a file that {STORE_ADDRESS}_FILE names"
        )
    return value


def _read_toml(config: Path) -> dict[str, Any]:
    try:
        text = read_text(config, ConfigError)
    except FileNotFoundError as error:
        raise ConfigError(f"config file {str(config)!r} does not exist: check the path") from error
    except OSError as error:
        raise ConfigError(f"config file {str(config)!r} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"config file {str(config)!r} is not UTF-8 text: save it as UTF-8") from error
    try:
        return parse_toml(text)
    except ValueError as error:
        raise ConfigError(f"config file {str(config)!r} is not TOML: {error}") from error


def _find_key(key: str, where: str) -> str:
    if key in RENAMED:
        newer, difference = RENAMED[key]
        raise ConfigError(f"{where}: {key} is gone: write {newer}; {difference}")
    if key in FIELDS:
        return key
    if is_secret_name(key):
        raise ConfigError(f"{where}: {where_secrets_belong(key)}")
    section, dot, name = key.rpartition(".")
    if not dot:
        section = key
        known = [*SECTIONS, *(top for top in FIELDS if "." not in top)]
        raise ConfigError(f"{where}: no section or setting {section!r}.{_near_section(section, known)}")
    inside = [inner.removeprefix(f"{section}.") for inner in FIELDS if inner.startswith(f"{section}.")]
    names = list(dict.fromkeys(inner.split(".")[0] for inner in inside))  # a section inside is named once
    if not names:
        raise ConfigError(f"{where}: no section {section!r}.{nearest(section, list(SECTIONS))}")
    guess = nearest(name, names) or f" It has {', '.join(names)}."
    raise ConfigError(f"{where}: no setting {name!r} in section [{section}].{guess}")


def _near_section(section: str, known: list[str]) -> str:
    """The section of that name inside another one, or the nearest known name."""
    parents = {field.rpartition(".")[0] for field in FIELDS}
    inner = next((name for name in sorted(parents) if name.endswith(f".{section}")), None)
    return f" Did you mean [{inner}]?" if inner else nearest(section, known)


def _from_environment(environment: Mapping[str, str]) -> Iterator[tuple[str, Any, str]]:
    address = secret(STORE_ADDRESS, environment)
    if address is not None and STORE_ADDRESS not in environment:
        yield ENVIRONMENT[STORE_ADDRESS], address, f"env {STORE_ADDRESS}_FILE"
    for name in sorted(environment):
        if not name.startswith(PREFIX) or name in NOT_SETTINGS:
            continue
        if name in GONE:
            newer, difference = RENAMED[GONE[name]]
            new = _variable(newer)
            raise ConfigError(f"environment variable {name!r} is gone: write {new}; {difference}")
        if name not in ENVIRONMENT:
            raise ConfigError(f"environment variable {name!r} names no setting.{nearest(name, ENVIRONMENT)}")
        key, origin = ENVIRONMENT[name], f"env {name}"
        yield key, _from_text(key, environment[name], origin), origin


def _from_text(key: str, text: str, origin: str) -> Any:
    annotation: Any = FIELDS[key].annotation
    if get_origin(annotation) is tuple:
        return _parse_list(key, text, origin)
    if text == "" and NoneType in get_args(annotation):
        return None
    try:
        return TypeAdapter(annotation).validate_strings(text)
    except ValidationError as error:
        raise _describe_refused(key, text, origin, error) from error


def _parse_list(key: str, text: str, origin: str) -> Any:
    if not text.lstrip().startswith("["):
        return [part.strip() for part in text.split(",") if part.strip()]
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{origin}: {key} = {text!r} is not a JSON list: {error}") from error


def _from_flags(flags: Mapping[str, tuple[str, Any]], word: str) -> Iterator[tuple[str, Any, str]]:
    for key, (option, value) in flags.items():
        if value is not None:
            origin = f"{word} {option}"
            yield _find_key(key, origin), value, origin


def _check(key: str, value: Any, origin: str) -> Any:
    field = FIELDS[key]
    try:
        text = json.dumps(_jsonable(value))
        adapter: TypeAdapter[Any] = TypeAdapter(_annotate(field))
        return adapter.validate_json(text, strict=True)
    except ValidationError as error:
        raise _describe_refused(key, value, origin, error) from error
    except (ValueError, TypeError, RecursionError) as error:
        raise ConfigError(f"{origin}: {key} = {_quote(value)}: {error}") from error


def _annotate(field: FieldInfo) -> Any:
    return Annotated[field.annotation, field] if field.metadata else field.annotation


def _jsonable(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("the number is not finite")
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(key): _jsonable(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_jsonable(inner) for inner in value]
    return value


def _describe_refused(key: str, value: Any, origin: str, error: ValidationError) -> ConfigError:
    problems = error.errors(include_url=False)
    first = next((problem for problem in problems if problem["type"] == "extra_forbidden"), problems[0])
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"])
    reason = first["msg"][:1].lower() + first["msg"][1:]
    choices = [choice for choice in get_args(FIELDS[key].annotation) if isinstance(choice, str)]
    guess = nearest(value, choices) if isinstance(value, str) else ""
    return ConfigError(f"{origin}: {key}{place} = {_quote(value)}: {reason}{'.' + guess if guess else ''}")


def _quote(value: Any) -> str:
    text = masked_addresses(repr(value))
    return text if len(text) <= 80 else f"{text[:77]}..."


def _tree(values: Mapping[str, Any], origins: Mapping[str, str]) -> Settings:
    nested: dict[str, Any] = {}
    for key, value in values.items():
        table = nested
        *sections, name = key.split(".")
        for section in sections:
            table = table.setdefault(section, {})
        table[name] = value
    try:
        return Settings.model_validate(nested)
    except ValidationError as error:
        message = error.errors(include_url=False)[0]["msg"].removeprefix("Value error, ")
        given = ", ".join(f"{key} from {origin}" for key, origin in origins.items())
        raise ConfigError(f"{message} (given: {given})") from error
