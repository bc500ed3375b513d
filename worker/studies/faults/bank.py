"""The bank of faults: rows of a data file, each with how it is planted and where it should be stopped."""

from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, ValidationError, model_validator

from schemas.contract import Contract, FrozenMap
from schemas.errors import ConfigError, first_fault
from schemas.vocabulary import Severity
from services.text.given_files import parse_toml, read_text

EMBEDDED = Path(__file__).with_name("bank.toml")
Place = Literal["rule", "reply", "context", "reader", "no_effect"]


class BankFault(Contract):
    """One kind of fault.

    Attributes:
        severity: what it would do if nothing stopped it.
        expected: where it is stopped: by a `rule`, a closed contract (`reply`), a guardrail (`context`), a
            second reader alone, or nowhere, because the plan stays the same to the byte (`no_effect`).
        set: values by the path of their field in the request; texts may name what a plan has.
        add: numbers that are added, by path.
        reply: fields of a model's reply in which the plan is proposed.
        note: why there is no place for it; none of the three above then.
    """

    name: str = Field(min_length=1, max_length=80)
    severity: Severity
    expected: tuple[Place, ...] = Field(min_length=1)
    set: FrozenMap[str, Any] = Field(default_factory=dict)
    add: FrozenMap[str, float] = Field(default_factory=dict)
    reply: FrozenMap[str, Any] = Field(default_factory=dict)
    note: str = ""

    @model_validator(mode="after")
    def _is_planted_or_says_why_not(self) -> Self:
        if bool(self.note) == bool(self.set or self.add or self.reply):
            raise ValueError("give set, add or reply, or a note that says why there is no place for it")
        return self


class FaultBank(Contract):
    """Every kind once."""

    fault: tuple[BankFault, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _names_each_once(self) -> Self:
        names = [fault.name for fault in self.fault]
        if twice := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"{twice[0]!r} is there twice: give each fault its own name")
        return self


def read_bank(more: Path | None = None) -> tuple[BankFault, ...]:
    """The embedded faults, and those of a file behind them.

    Raises:
        ConfigError: the file is no bank; names file, place and reason.
    """
    ours = FaultBank.model_validate(parse_toml(EMBEDDED.read_text("utf-8"))).fault
    if more is None:
        return ours
    try:
        given = FaultBank.model_validate(parse_toml(read_text(more, ConfigError)))
        return FaultBank(fault=(*ours, *given.fault)).fault
    except ValidationError as error:
        why = first_fault(error)
    except (OSError, ValueError) as error:
        why = str(error)
    raise ConfigError(f"--bank {str(more)!r} cannot be read: {why}; the docs of `faults` show a row")
