"""Our guard in the crash test, through the door that everybody has: `tt.guard`."""

import tempfile
from collections.abc import Iterable
from typing import Any

import thinktwice as tt
from benchmarks.guards.cases import NS, Case, bars_of
from benchmarks.guards.limits import OURS
from trading_core.bars import BarSeries

FIELDS = ("symbol", "side", "quantity", "kind", "price", "stop", "target", "reasons")


def judge_all(cases: Iterable[Case], bars: BarSeries) -> dict[str, str]:
    """Why each case was stopped by its id; empty where the order left."""
    with tempfile.TemporaryDirectory() as folder:
        return {case["id"]: judge(case, bars, f"sqlite:///{folder}/{case['id']}.sqlite") for case in cases}


def judge(case: Case, bars: BarSeries, store: str) -> str:
    """Why the order was stopped, by the first finding that counts; empty where it left."""
    clock = [case["now"]]
    limits = {**OURS, "envelope": {**OURS["envelope"], "kill_switch": case["kill_switch"]}}
    account = {name: case[name] for name in ("equity", "cash", "positions", "day_result", "drawdown")}
    given: dict[str, Any] = {"account": {**account, "orders": []}, "bars": bars_of(case, bars)}
    with tt.guard(limits, store=store, mode="enforce", clock=lambda: clock[0]) as guard:
        try:
            for before in case["earlier"]:
                clock[0] = before["at"]
                order = _order(before["order"])
                guard.spend(guard.check(order, **given).id, order)
            clock[0] = case["now"]
            order, then = _order(case["order"]), case["then"] or {}
            verdict = guard.check(order, **given)
            if not verdict:
                return verdict.reply.split(": ")[1]
            if then.get("again"):
                guard.spend(verdict.id, order)
            clock[0] += then.get("wait_s", 0) * NS
            guard.spend(verdict.id, order | {"quantity": order["quantity"] + then.get("quantity_more", 0)})
        except tt.DataError:
            return "refused as input"
        except tt.OrderRefused as refused:
            return str(refused).split(": ")[0].split("' ")[1]
    return ""


def _order(order: dict[str, Any]) -> dict[str, Any]:
    return {name: order[name] for name in FIELDS if order.get(name) is not None}
