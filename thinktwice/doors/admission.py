"""What every door does with the arguments of a call: the order in them, a verdict, and its one use."""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from schemas.errors import ConfigError, OrderRefused, nearest
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

    def order_in(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of an order, and `why`, among the arguments of a call."""
        found = {name: arguments.get(self.names.get(name, name)) for name in FIELDS}
        return {name: value for name, value in found.items() if value is not None}

    def admit(self, order: Any, *, spend: bool = True, **given: Any) -> Verdict | None:
        """The verdict on an order that may go on, spent on it; None in shadow where none could be given.

        Raises:
            OrderRefused: the guard refuses the order, cannot read it, or failed.
        """
        try:
            fields = dict(order) if isinstance(order, Mapping) else order
            given["why"] = fields.pop("why", None) if isinstance(fields, dict) else None
            read = read_order(fields, {})
            if self.bars is not None:
                given["bars"] = self.bars(read.symbol)
            verdict = self.guard.check(read, **given)
            if not verdict:
                raise OrderRefused(verdict.reply)
            if spend:
                self.guard.spend(verdict.id, read)
        except Exception as error:
            if self.guard.mode == "enforce":
                raise OrderRefused(str(error)) from error
            warnings.warn(f"an order went on unchecked: {error}", stacklevel=2)
            return None
        return verdict
