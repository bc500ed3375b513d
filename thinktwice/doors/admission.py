"""What every door does with the arguments of a call: the order in them, a verdict, and its one use."""

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from schemas.errors import ConfigError, DataError, OrderRefused, nearest
from schemas.guard import Order, Verdict
from services.guard.reading import read_order

if TYPE_CHECKING:
    from thinktwice.guarding import Guard

FIELDS = (*Order.model_fields, "why")


@dataclass(frozen=True)
class Admission:
    """Asks `guard`; `names` has the argument of each field of an order that is not called like it."""

    guard: "Guard"
    names: Mapping[str, str] = field(default_factory=dict)
    bars: Callable[[str], Any] | None = None  # of a symbol, as `Guard.check` takes them

    def __post_init__(self) -> None:
        for name in self.names.keys() - set(FIELDS):
            raise ConfigError(f"{name!r} is no field of an order.{nearest(name, FIELDS)}")

    def order_in(self, arguments: Any, schema: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The fields of an order, and `why`, among the arguments of a call, by name.

        `schema` has the parts of a tool's JSON Schema: what is none of them is not sent, and does not count;
        what was left out has its default.

        Raises:
            DataError: the arguments have no names.
        """
        if not isinstance(arguments, Mapping):
            raise DataError(f"arguments {ascii(arguments)[:80]}: give them by name")
        if schema:
            usual = {name: part.get("default") for name, part in schema.items()}
            arguments = usual | {name: arguments[name] for name in arguments if name in schema}
        found = {name: arguments.get(self.names.get(name, name)) for name in FIELDS}
        return {name: value for name, value in found.items() if value is not None}

    @contextmanager
    def hold(self) -> Iterator[None]:
        """What fails within it refuses the order; in mode `shadow` it is warned of, and the order goes on.

        Raises:
            OrderRefused: says what failed.
        """
        try:
            yield
        except Exception as error:
            if self.guard.mode == "enforce":
                raise OrderRefused(str(error)) from error
            warnings.warn(f"an order went on unchecked: {error}", stacklevel=4)

    def admit(self, order: Any, *, spend: bool = True, **given: Any) -> Verdict:
        """The verdict on an order that may go on, spent on it.

        Raises:
            OrderRefused: the guard refuses the order.
            Exception: the guard cannot read it, or failed; see `hold`.
        """
        fields = dict(order) if isinstance(order, Mapping) else order
        given["why"] = fields.pop("why", None) if isinstance(fields, dict) else None
        read = read_order(fields, {})
        verdict = self.guard.check(read, bars=self.bars, **given)
        if not verdict:
            raise OrderRefused(verdict.reply)
        if spend:
            self.guard.spend(verdict.id, read)
        return verdict
