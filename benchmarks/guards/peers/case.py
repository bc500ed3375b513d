# mypy: ignore-errors
"""What every adapter shares: reading the cases, asking its guard of each, writing what was stopped and why.

Runs inside each guard's own environment, with the standard library alone. What a guard raises counts as
stopped. None of the guards here spends its verdict with the order itself, so what happens to an order after
it passed (changed, sent twice, sent late) is seen by none of them.
"""

import json
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path


def run(package, judge):
    """Ask `judge(case, limits)` of every case; it answers why the order is stopped, empty where it is not."""
    document = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    reasons = {}
    for case in document["cases"]:
        try:
            reasons[case["id"]] = str(judge(case, document["limits"]))
        except Exception as error:  # noqa: BLE001 - whatever a guard raises, the order does not leave
            reasons[case["id"]] = f"raised {type(error).__name__}"
    found = {"package": package, "version": version(package), "reasons": reasons}
    Path(sys.argv[2]).write_text(json.dumps(found), "utf-8")


def moment(ns):
    """A time of a case, aware UTC."""
    return datetime.fromtimestamp(ns / 1e9, UTC)


def price_of(order):
    """At which the order is expected to fill: its own price, or the one that its agent saw."""
    return order["seen"] if order["price"] is None else order["price"]


def held(case):
    """Units of the order's symbol that are held."""
    return case["positions"].get(case["order"]["symbol"], {"quantity": 0})["quantity"]


def is_exit(case):
    """Whether the order only lowers its position, as a caller knows who keeps the book."""
    return case["order"]["side"] == "sell" and 0 < case["order"]["quantity"] <= held(case)


def last_of(case, symbol):
    """The last price of a symbol; None where there is no quote."""
    return case["quotes"][symbol]["last"] if symbol in case["quotes"] else None


def quoted_at(case):
    """When the newest quote was made; now where there is none."""
    return moment(max((quote["at"] for quote in case["quotes"].values()), default=case["now"]))


def peak_of(case):
    """Equity at its peak."""
    return case["equity"] / (1.0 - case["drawdown"])
