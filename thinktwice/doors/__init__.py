"""Doors: where an order of an agent passes the guard on its way to the broker; here the decorator."""

import asyncio
import inspect
from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import wraps
from typing import TYPE_CHECKING, Any, Literal

from schemas.errors import OrderRefused
from thinktwice.doors.admission import Admission

if TYPE_CHECKING:
    from thinktwice.guarding import Guard


def guard_orders(
    guard: "Guard",
    function: Callable[..., Any],
    order: str | None = None,
    to_order: Callable[..., Any] | None = None,
    names: Mapping[str, str] | None = None,
    bars: Callable[[str], Any] | None = None,
    on_refusal: Literal["raise", "return"] = "raise",
) -> Callable[..., Any]:
    """A function that sends orders, called with those alone that pass: see `Guard.orders`."""
    door, signature = Admission(guard, names or {}, bars), inspect.signature(function)

    def admit(bound: inspect.BoundArguments) -> str | None:
        bound.apply_defaults()
        try:
            with door.hold():
                for name, value in bound.arguments.items():  # whoever changes it meanwhile, this is sent
                    if name == order or (to_order is not None and isinstance(value, dict | list)):
                        bound.arguments[name] = deepcopy(value)
                arguments = {**bound.arguments, **bound.kwargs}
                made = door.order_in(arguments) if order is None else arguments[order]
                verdict = door.admit(made if to_order is None else to_order(*bound.args, **bound.kwargs))
                if bound.arguments.get("client_order_id", "") is None:
                    bound.arguments["client_order_id"] = verdict.id
        except OrderRefused as refused:
            if on_refusal == "raise":
                raise
            return str(refused)
        return None

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        return admit(bound) or function(*bound.args, **bound.kwargs)

    @wraps(function)
    async def call_async(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        return await asyncio.to_thread(admit, bound) or await function(*bound.args, **bound.kwargs)

    return call_async if inspect.iscoroutinefunction(function) else call
