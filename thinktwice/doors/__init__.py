"""Doors: where an order of somebody's agent passes the guard on its way to the broker.

The decorator is here, the doors of frameworks beside it; each imports its framework when it is imported.
"""

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

    def admit(*args: Any, **kwargs: Any) -> inspect.BoundArguments:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        with door.hold():
            for (
                name,
                value,
            ) in bound.arguments.items():  # whoever changes it meanwhile, what was checked is sent
                if name == order or (to_order is not None and isinstance(value, dict | list)):
                    bound.arguments[name] = deepcopy(value)
            arguments = {**bound.arguments, **bound.kwargs}
            made = door.order_in(arguments, {}) if order is None else arguments[order]
            verdict = door.admit(made if to_order is None else to_order(*bound.args, **bound.kwargs))
            if bound.arguments.get("client_order_id", "") is None:
                bound.arguments["client_order_id"] = verdict.id
        return bound

    def refuse(refused: OrderRefused) -> str:
        if on_refusal == "raise":
            raise refused
        return str(refused)

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            bound = admit(*args, **kwargs)
        except OrderRefused as refused:
            return refuse(refused)
        return function(*bound.args, **bound.kwargs)

    @wraps(function)
    async def call_async(*args: Any, **kwargs: Any) -> Any:
        try:
            bound = await asyncio.to_thread(admit, *args, **kwargs)
        except OrderRefused as refused:
            return refuse(refused)
        return await function(*bound.args, **bound.kwargs)

    return call_async if inspect.iscoroutinefunction(function) else call
