"""The state of a guard: a fold of its journal rows, and nothing else."""

import json
from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from math import isclose, isfinite
from typing import Any

from schemas.errors import DataError
from schemas.guard import Order, Verdict
from services.journal.chain import GENESIS_HASH, JournalRow

NS = 1_000_000_000
DAY_NS = 86_400 * NS
BESIDE = ("position", "quantity", "notional", "price", "risk", "facts")
ROUNDING = 1e-9
ALIKE = 1e-3  # sizes and prices this near are the same


@dataclass(frozen=True)
class CheckedOrder:
    """An order with its verdict, without findings, and what stands beside them in the row.

    `position` is what was held then, in units, and `facts` what the bars said, as plain data.
    """

    order: Order
    verdict: Verdict
    position: float = 0.0
    quantity: float | None = None
    notional: float | None = None
    price: float | None = None
    risk: float | None = None
    facts: Mapping[str, Any] | None = None

    @property
    def id(self) -> str:
        """Of the verdict."""
        return self.verdict.id

    @property
    def at(self) -> int:
        """When it was checked, ns."""
        return self.verdict.at

    @property
    def opens(self) -> bool:
        """Whether it could be sent, and adds to the exposure of its symbol."""
        return bool(self.verdict) and not self.verdict.reduces


@dataclass(frozen=True)
class Question:
    """What a person is asked: about one order, until a time; `approve` None until it is decided."""

    hash: str
    order_hash: str
    verdict_id: str
    expires_at: int
    approve: bool | None = None
    by: str | None = None


@dataclass
class Ledger:
    """Everything that the rows of one guard come to.

    Attributes:
        events, head_hash: rows that were folded, and the hash of the last.
        opened: name, mode and settings that the guard was opened with last.
        orders: checked ones by the id of their verdict, oldest first.
        spent: when verdicts were used, ns, by their id.
        settled: R by the id of the verdict, with when it was closed; None where the order has no risk.
        outcomes: of refused orders on paper, by the id of the verdict.
        questions: by hash.
        closes: close that was shown first, by symbol, timeframe and label.
        corrections: of outcomes that were settled before.
        holdings: units by symbol that spent orders at market opened and none closed, as far as rows say.
        killed: an operator's kill switch is on.
    """

    events: int = 0
    head_hash: str = GENESIS_HASH
    opened: Mapping[str, Any] = field(default_factory=dict)
    orders: dict[str, CheckedOrder] = field(default_factory=dict)
    spent: dict[str, int] = field(default_factory=dict)
    settled: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    outcomes: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    questions: dict[str, Question] = field(default_factory=dict)
    closes: dict[tuple[str, str, int], float] = field(default_factory=dict)
    corrections: int = 0
    holdings: dict[str, float] = field(default_factory=dict)
    killed: bool = False
    _entries: list[CheckedOrder] = field(default_factory=list)  # by time, however clocks were set
    _of_symbol: dict[str, list[CheckedOrder]] = field(default_factory=lambda: defaultdict(list))
    _used: set[str] = field(default_factory=set)
    _taken: dict[str, float] = field(default_factory=lambda: defaultdict(float))  # by exits, not settled yet

    def fold(self, row: JournalRow) -> None:
        """Take the next row in."""
        payload = json.loads(row.payload)
        if row.kind == "guard_opened":
            self.opened = payload
        elif row.kind == "guard_verdict":
            self._fold_verdict(payload)
        elif row.kind == "guard_spent" and payload["problem"] is None:
            self.spent[payload["verdict_id"]] = row.ts_event
            self._hold(self.orders[payload["verdict_id"]])
        elif row.kind == "guard_settled":
            name = payload["verdict_id"]
            self.corrections += name in self.settled
            if name in self.spent and name not in self.settled:
                self._release(self.orders[name])
            self.settled[name] = payload
        elif row.kind == "guard_outcome":
            self.outcomes[payload["verdict_id"]] = payload
        elif row.kind in ("guard_asked", "guard_decided"):
            question = Question(**payload)
            self.questions[question.hash] = question
        elif row.kind == "guard_killed":
            self.killed = payload["on"]
        self.events, self.head_hash = row.seq + 1, row.hash

    def _fold_verdict(self, payload: dict[str, Any]) -> None:
        order = Order.model_validate(payload["order"])
        verdict = Verdict.model_validate(payload["verdict"] | {"findings": ()})
        others = {name: payload[name] for name in BESIDE}
        checked = CheckedOrder(order, verdict, **others)
        if payload["approved"] is not None:
            self._used.add(payload["approved"])
        if facts := payload["facts"]:
            self.closes.setdefault((order.symbol, facts["timeframe"], facts["label"]), facts["close"])
        self.take(checked)

    def take(self, checked: CheckedOrder) -> None:
        """Remember a checked order; what limits count is what passed, in either mode."""
        order = checked.order
        self.orders[checked.id] = checked
        if checked.verdict.status != "pass":
            return
        insort(self._of_symbol[order.symbol], checked, key=_time)
        if checked.opens:
            insort(self._entries, checked, key=_time)

    def _hold(self, checked: CheckedOrder) -> None:
        """Units that are held: an entry that may not have filled adds none, nor does such a stop take any."""
        order, quantity = checked.order, checked.quantity or 0.0
        held = self.holdings.get(order.symbol, 0.0)
        if held * order.sign < 0 and order.kind != "stop":
            quantity = min(quantity, abs(held))
            self._taken[order.symbol] += quantity
            self.holdings[order.symbol] = held + order.sign * quantity
        elif _is_held(checked):
            self.holdings[order.symbol] = held + order.sign * quantity

    def _release(self, checked: CheckedOrder) -> None:
        """A settled entry is held no more; what sent exits took already is not taken twice."""
        order, held = checked.order, self.holdings.get(checked.order.symbol, 0.0)
        if _is_held(checked):
            known = min(checked.quantity or 0.0, self._taken[order.symbol])
            self._taken[order.symbol] -= known
            rest = min((checked.quantity or 0.0) - known, max(0.0, held * order.sign))
            self.holdings[order.symbol] = held - order.sign * rest

    def spending_problem(self, verdict_id: str, order_hash: str, now: int) -> str | None:
        """Why a verdict cannot be used for an order now; None where it can."""
        checked = self.orders.get(verdict_id)
        if checked is None:
            return "is unknown to this guard: check the order first"
        if checked.verdict.order_hash != order_hash:
            return "is of another order: check the order as it is now"
        if verdict_id in self.spent:
            return "was spent before: check the order again"
        if now > checked.verdict.expires_at:
            return "has expired: check the order again"
        if self.killed and not checked.verdict.reduces:
            return "opens while the kill switch is on: wait until the operator releases it"
        return None if checked.verdict.status == "pass" else f"is no pass: {checked.verdict.reply}"

    def last_unspent(self, order_hash: str, now: int) -> Verdict | None:
        """The last verdict by which exactly this order may be sent now, without its findings."""
        for checked in reversed(self.orders.values()):
            verdict = checked.verdict
            if verdict and verdict.order_hash == order_hash and verdict.expires_at >= now:
                return None if verdict.id in self.spent else verdict
        return None

    def settlement(self, outcome: Mapping[str, Any], now: int) -> Mapping[str, Any]:
        """The row of an order that ended.

        Raises:
            DataError: it closed before its check, or its outcome is no number.
        """
        name = str(outcome["client_order_id"])
        checked, r, pnl = self.orders[name], outcome.get("r"), outcome.get("pnl")
        closed_at = outcome.get(
            "closed_at", self.settled.get(name, {}).get("closed_at", max(now, checked.at))
        )
        given = {"r": r, "pnl": pnl, "closed_at": closed_at}
        if r is None and pnl is None:
            raise DataError(f"client_order_id {name!a}: neither r nor pnl: give one of them")
        wrong = next((key for key, value in given.items() if not _is_number(value)), None)
        if wrong is not None:
            raise DataError(f"client_order_id {name!a}: {wrong} {given[wrong]!a} is no number: give one")
        if closed_at < checked.at:
            raise DataError(f"client_order_id {name!a}: closed_at {closed_at} lies before its check: mend it")
        if r is None and pnl is not None and checked.risk:
            r = pnl / checked.risk
        return {"verdict_id": name, "r": r, "pnl": pnl, "closed_at": int(closed_at)}

    def losses_in_a_row(self) -> Sequence[Mapping[str, Any]]:
        """Rows of the settled orders that lost since one did not, the last first."""
        lost = takewhile(
            lambda row: (row["r"] if row["pnl"] is None else row["pnl"]) < 0, reversed(self.settled.values())
        )
        return list(lost)

    def outcome_rows(self) -> Iterator[dict[str, Any]]:
        """Orders that opened and have an R, oldest first; times in ns, `outcome` sent or shadow."""
        for checked in self.orders.values():
            ended = self.settled.get(checked.id) or self.outcomes.get(checked.id)
            if ended is None or ended["r"] is None or checked.verdict.reduces:
                continue
            facts = checked.facts or {"timeframe": "1d", "regime": None}
            labels = None if facts["regime"] is None else facts["regime"]["labels"]
            yield {
                "order": checked.id, "playbook": checked.order.strategy, "symbol": checked.order.symbol,
                "direction": checked.order.direction, "timeframe": facts["timeframe"],
                "regime": "unknown" if labels is None else f"{labels['trend']}/{labels['volatility']}",
                "entry_time": checked.at, "exit_time": ended["closed_at"], "r": ended["r"],
                "outcome": "sent" if checked.id in self.settled else "shadow",
                "status": checked.verdict.status,
            }  # fmt: skip

    def entries(self, since: int, until: int) -> Sequence[CheckedOrder]:
        """Orders that passed, and open or add, of a span of time in ns, oldest first."""
        start = bisect_left(self._entries, since, key=_time)
        return self._entries[start : bisect_left(self._entries, until, key=_time)]

    def last_like(self, checked_order: CheckedOrder, since: int) -> CheckedOrder | None:
        """The last that passed after a time (ns) and does the same, whatever its reasons are.

        Here as in `closing` a row counts as long before its time as after it: a clock was set back, or that
        of another machine is ahead.
        """
        for before in reversed(self._of_symbol.get(checked_order.order.symbol, ())):
            if before.at <= since:
                break
            if before.at < 2 * checked_order.at - since and _is_alike(before, checked_order):
                return before
        return None

    def count_adds(self, symbol: str) -> int:
        """Orders that added to the position that is open in a symbol now."""
        count = 0
        for checked in reversed(self._of_symbol.get(symbol, ())):
            if checked.position * checked.order.sign > 0:
                count += 1
            elif checked.opens:
                break
        return count

    def closing(
        self, order: Order, position: float, since: int, now: int, counts: Callable[[CheckedOrder], bool]
    ) -> float:
        """Units by which exits to its side that count, passed or sent since then, may lower a position."""
        sent = list[CheckedOrder]()
        for checked in reversed(self._of_symbol.get(order.symbol, ())):
            at = self.spent.get(checked.id, checked.at)
            if max(at, checked.verdict.expires_at) < since:  # nor was any before it sent since
                break
            closes = checked.verdict.reduces and checked.order.side == order.side
            if closes and since <= at <= 2 * now - since and counts(checked):
                sent.insert(0, checked)
        return max(0.0, sum(exit.quantity or 0.0 for exit in sent) - units_moved(sent, position))

    def approval_of(self, order_hash: str, now: int) -> str | None:
        """Hash of an approval of exactly this order that was neither used nor is over; none while killed."""
        for question in () if self.killed else self.questions.values():
            good = question.approve and question.expires_at >= now and question.hash not in self._used
            if good and question.order_hash == order_hash:
                return question.hash
        return None


def fills_at_once(order: Order, close: float | None) -> bool:
    """Whether an order fills where this is the last price; None: not known, then a stop alone rests."""
    if order.kind == "market" or close is None or order.price is None:
        return order.kind != "stop"
    return (order.price - close) * order.sign * (-1 if order.kind == "stop" else 1) >= 0


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and isfinite(value))


def units_moved(sent: Sequence[CheckedOrder], position: float) -> float:
    """Units that a position has moved as these orders of one side and symbol want since the first of them."""
    return max(0.0, (position - sent[0].position) * sent[0].order.sign) if sent else 0.0


def _is_held(checked: CheckedOrder) -> bool:
    return checked.opens and checked.order.kind == "market"


def _time(checked: CheckedOrder) -> int:
    return checked.at


def _is_alike(before: CheckedOrder, checked_order: CheckedOrder) -> bool:
    first, second = before.order, checked_order.order
    by_units = before.quantity is not None and checked_order.quantity is not None
    sizes = (
        (before.quantity, checked_order.quantity) if by_units else (before.notional, checked_order.notional)
    )
    named = (first.stop, first.target) == (second.stop, second.target) or first.strategy == second.strategy
    unpriced = before.price is None or checked_order.price is None
    return (
        first.side == second.side
        and named
        and _is_near(*sizes)
        and (unpriced or _is_near(before.price, checked_order.price))
    )


def _is_near(first: float | None, second: float | None) -> bool:
    return first is not None and second is not None and isclose(first, second, rel_tol=ALIKE)
