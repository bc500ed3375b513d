"""A broker that counts, orders that a guard lets pass and refuses, and what its journal says of them."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.services.store.stores import opened

LIMITS = {"limits": {"max_notional": 10_000.0, "max_share_of_equity": None}}
RIGHT = {"symbol": "AAPL", "side": "buy", "quantity": 10.0, "kind": "limit", "price": 100.0, "stop": 95.0}
TOO_LARGE = {**RIGHT, "quantity": 1_000.0}


@dataclass
class Broker:
    """Takes every order that reaches it."""

    orders: list[dict[str, Any]] = field(default_factory=list)

    def submit(self, **order):
        self.orders.append(order)
        return f"accepted {len(self.orders)}"


def rows(store: Path, *kinds):
    """Content of the rows of a guard's journal that are of these kinds, in order."""
    marks = ",".join("?" * len(kinds))
    with opened(store) as file:
        found = file.execute(
            f"select unpacked(payload) from journal where kind in ({marks}) order by seq", kinds
        )
        return [json.loads(payload) for (payload,) in found]


def fail(*args, **given):
    raise RuntimeError("the guard has a fault")
