"""Orders, accounts and settings of a guard as callers give them: one error, with field, value and remedy."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from schemas.contract import Contract
from schemas.contract_keys import choices, known_keys
from schemas.errors import ConfigError, DataError, OperatorError, nearest
from schemas.guard import Account, GuardSettings, Order
from services.text.given_files import parse_toml, read_text

LONGEST = 80
C = TypeVar("C", bound=Contract)
Made = TypeVar("Made")


def read_order(given: Order | Mapping[str, Any] | None, fields: Mapping[str, Any]) -> Order:
    """An order from a contract, a dict or fields by name.

    Raises:
        DataError: names field, value and remedy.
    """
    if isinstance(given, Order) and not fields:
        return given
    if given is not None and not isinstance(given, Mapping | Order):
        raise DataError(f"order {_short(given)}: give a dict, an Order, or its fields by name")
    start = given.payload() if isinstance(given, Order) else dict(given or {})
    return read_contract(Order, {**start, **fields}, "order", DataError)


def drop_mark(order: Order) -> Order:
    """The order without what an agent says of it: where it writes `reduce_only`, that shows no position."""
    return order.model_copy(update={"reduce_only": False})


def read_account(given: Account | Mapping[str, Any] | None) -> Account | None:
    """An account from a contract or a dict; None: not known.

    Raises:
        DataError: names field, value and remedy.
    """
    if given is None or isinstance(given, Account):
        return given
    if not isinstance(given, Mapping):
        raise DataError(f"account {_short(given)}: give a dict, an Account, or a function that returns one")
    return read_contract(Account, given, "account", DataError)


def attempt(make: Callable[[], Made], failures: list[Exception]) -> Made | None:
    """What is made; None where that fails for whatever reason: no order slips through, and no exit waits."""
    try:
        return make()
    except Exception as error:  # noqa: BLE001 - of the caller's own code and data
        failures.append(error)
        return None


def read_held(given: Any, symbol: str, failures: list[Exception]) -> Account | None:
    """An account, from what gives it or from the account itself.

    Where it cannot be read it has what an exit needs alone, units of the symbol, or it is None.
    """
    part: Any = attempt(given, failures) if callable(given) else given
    unread = list[Exception]()
    held = attempt(lambda: read_account(part), unread)
    failures += unread
    if not unread:
        return held

    def read_units() -> Account | None:
        units = {"quantity": part["positions"][symbol]["quantity"], "price": 0.0}
        return read_account({"equity": 0.0, "positions": {symbol: units}})

    return attempt(read_units, unread)


def read_settings(given: GuardSettings | Mapping[str, Any] | str | Path | None) -> GuardSettings:
    """Settings from a contract, a dict of sections, or the path of a TOML file; None: the defaults.

    Raises:
        ConfigError: names section, key, value and remedy.
    """
    if given is None or isinstance(given, GuardSettings):
        return given or GuardSettings()
    if isinstance(given, Mapping):
        return read_contract(GuardSettings, given, "limits", ConfigError)
    place = f"limits {str(given)!r}"
    if not isinstance(given, str | Path):
        raise ConfigError(f"{place}: give the path of a TOML file, a dict of its sections, or GuardSettings")
    try:
        document = parse_toml(read_text(Path(given), ConfigError))
    except ConfigError:
        raise
    except OSError as error:
        raise ConfigError(f"{place} cannot be read: {error.strerror}: check the path") from error
    except ValueError as error:
        raise ConfigError(f"{place} is not TOML: {error}") from error
    return read_contract(GuardSettings, document, place, ConfigError)


def read_contract(kind: type[C], given: Mapping[str, Any], place: str, error: type[OperatorError]) -> C:
    """A contract of plain data; its first problem in one line.

    Raises:
        error: names place, field, value and remedy.
    """
    try:
        return kind.model_validate(dict(given))
    except ValidationError as refused:
        problems = refused.errors(include_url=False)
    # A misspelt key is missing under its right name too; the misspelling is what to say.
    first = next((problem for problem in problems if problem["type"] == "extra_forbidden"), problems[0])
    steps = first["loc"]
    field = ".".join([place, *map(str, steps)])
    if first["type"] == "extra_forbidden":
        known = known_keys(kind, steps[:-1])
        guess = nearest(str(steps[-1]), known) or f" Known here: {', '.join(known)}."
        raise error(f"{field}: no such field.{guess}")
    if first["type"] == "missing":
        raise error(f"{field}: missing: give it")
    reason = first["msg"].removeprefix("Value error, ")
    if first["type"] == "value_error":
        raise error(f"{field}: {reason}")
    guess = nearest(str(first["input"]), choices(first))
    raise error(f"{field} = {_short(first['input'])}: {reason[:1].lower()}{reason[1:]}.{guess}".rstrip("."))


def _short(given: Any) -> str:
    text = ascii(given)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."
