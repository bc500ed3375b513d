"""Limits of single orders: pure critics on one value, in the order of the fast reflection.

A critic yields findings, and the name of each check whose input is missing. What only lowers the exposure of
its symbol is asked none of them: an exit is never trapped.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from math import copysign, floor, inf, log10
from typing import Literal

from schemas.errors import nearest
from schemas.guard import Account, BarFacts, GuardLimits, GuardSettings, Order, Verdict
from schemas.reflection import Finding, Remedy
from schemas.vocabulary import CheckName, Severity
from services.guard.ledger import DAY_NS, NS, ROUNDING, CheckedOrder, Ledger, fills_at_once, units_moved
from trading_core.kernel.flags import no_trade_reasons

BEYOND = 1e-4  # of a price or a distance: how far beyond a boundary the value of a remedy lies
CHANGED_ATR = 0.25  # a close that was shown otherwise before
HOUR_NS = 3_600 * NS


@dataclass(frozen=True)
class OrderContext:
    """Everything that the limits look at; `now` in ns."""

    order: Order
    account: Account | None
    settings: GuardSettings
    facts: BarFacts | None
    ledger: Ledger
    now: int

    @property
    def limits(self) -> GuardLimits:
        """Of the settings."""
        return self.settings.limits

    @property
    def needs_cash(self) -> bool:
        """Whether cash must pay for the order."""
        return self.order.side == "buy" and (self.limits.needs_cash or "cash" in self.limits.required)

    @property
    def since(self) -> int:
        """From when what passed may not show in the account yet, ns."""
        return self.now - int(self.limits.duplicate_window_s * NS)

    @cached_property
    def price(self) -> float | None:
        """At which the order will fill, as far as that is known."""
        if self.order.kind != "market" or self.facts is None:
            return self.order.price
        return self.facts.close

    @cached_property
    def quantity(self) -> float | None:
        """Units; None where they depend on an unknown price."""
        return self.order.quantity_at(self.unit(self.order.symbol, self.price))

    def unit(self, symbol: str, price: float | None) -> float | None:
        """What one unit of a symbol is worth at a price, in account currency."""
        return None if price is None else price * self.limits.point_value.get(symbol, 1.0)

    @cached_property
    def notional(self) -> float | None:
        """In account currency; None where it depends on an unknown price."""
        unit = self.unit(self.order.symbol, self.price)
        if self.order.quantity is None or unit is None:
            return self.order.notional
        return self.order.quantity * unit

    @property
    def risk(self) -> float | None:
        """What the stop would cost, in account currency; None where that is not known."""
        if self.order.stop is None or self.price is None or self.quantity is None:
            return None
        return (self.unit(self.order.symbol, abs(self.price - self.order.stop)) or 0.0) * self.quantity

    @cached_property
    def position(self) -> float:
        """Units that are held, below zero where short; without an account those of the guard's own orders."""
        if self.account is None:
            return self.ledger.holdings.get(self.order.symbol, 0.0)
        held = self.account.positions.get(self.order.symbol)
        return 0.0 if held is None else held.quantity

    @cached_property
    def left_to_close(self) -> float:
        """Units by which the order may lower the position.

        A stop protects what other orders close, so nothing counts against it, and it counts against nothing;
        one that the market is through already is a market order, as is such a limit. Those count against
        each other where they rest or passed just now, and limits against limits that rest.
        """
        order, account, size = self.order, self.account, abs(self.position)
        if account is None and order.reduce_only:
            return inf
        if self.position * order.sign >= 0:
            return 0.0
        close = None if self.facts is None else self.facts.close
        at_once, resting = fills_at_once(order, close), 0.0
        if order.kind == "stop" and not at_once:
            return size
        for other in self.resting_exits:
            goes = other.kind == "market" or (close is not None and fills_at_once(other, close))
            if (at_once and goes) or other.kind == order.kind == "limit":
                resting += other.quantity_at(self.unit(order.symbol, other.price or self.price)) or size

        def counts(sent: CheckedOrder) -> bool:
            then = None if sent.facts is None else sent.facts["close"]
            goes = fills_at_once(sent.order, then) or (close is not None and fills_at_once(sent.order, close))
            hidden = account is None or account.orders is None
            return (at_once and goes) or (hidden and sent.order.kind == order.kind == "limit")

        sent = self.ledger.closing(order, self.position, self.since, self.now, counts)
        return max(0.0, size - max(resting, sent))

    @property
    def resting_exits(self) -> tuple[Order, ...]:
        """Open orders of the symbol and side of this one."""
        known = () if self.account is None else self.account.orders or ()
        wanted = (self.order.symbol, self.order.side)
        return tuple(other for other in known if (other.symbol, other.side) == wanted)

    @cached_property
    def reduces(self) -> bool:
        """Whether it only lowers the exposure of its symbol; bars that are believed turn money into units."""
        amount, left = self.order.quantity, self.left_to_close
        if amount is None and left < inf and self.facts is not None:
            found = (answer for answer in find_bad_bars(self) if isinstance(answer, Finding))
            if all(finding.severity is not Severity.BLOCKER for finding in found):
                lowest = min(self.facts.close, self.price or self.facts.close)
                amount = self.order.quantity_at(self.unit(self.order.symbol, lowest))
        return left == inf or (amount is not None and 0.0 < amount <= left * (1.0 + ROUNDING))

    @property
    def exit_note(self) -> str:
        """What is said of an order that reduces."""
        kinds = " and a ".join(dict.fromkeys(other.kind for other in self.resting_exits))
        rest = f"; a {kinds} order to {self.order.side} rests beside it: cancel what must not fill too"
        text = "only lowers the exposure of its symbol"
        if self.account is None:
            own = "is no more than this guard's orders opened"
            message = "says so itself" if self.order.reduce_only else own
            text = f"{message}; no account tells what is held"
        return f"the order {text}: no more is asked" + (rest if kinds else "")

    @cached_property
    def checked(self) -> CheckedOrder:
        """The order as the ledger would remember it."""
        verdict = Verdict(
            id="", order_hash="", status="pass", reply="", at=self.now, expires_at=self.now, mode="enforce"
        )
        return CheckedOrder(self.order, verdict, self.position, self.quantity, self.notional, self.price)

    def exposures(self, equity: float) -> dict[str, float]:
        """Value of each position over equity, below zero where short, with open orders that add to it."""
        found: dict[str, float] = {}
        for symbol, held in () if self.account is None else self.account.positions.items():
            own = self.price if symbol == self.order.symbol else None
            found[symbol] = held.quantity * (self.unit(symbol, own or held.price) or 0.0) / equity
        for symbol, worth in self.list_open():
            share, there = (worth or 0.0) / equity, found.get(symbol, 0.0)
            found[symbol] = there + share if there * share >= 0 else there
        return found

    def list_open(self) -> Iterator[tuple[str, float | None]]:
        """(symbol, worth) of open orders, below zero where they sell; None where no price tells it.

        Where they are not known: entries that passed just now, less what the position shows of them.
        """
        account = self.account
        for other in () if account is None else account.orders or ():
            held = account and account.positions.get(other.symbol)
            price = other.price or (self.price if other.symbol == self.order.symbol else held and held.price)
            unit = self.unit(other.symbol, price or None)
            worth = other.notional if unit is None else other.notional or (other.quantity or 0.0) * unit
            yield other.symbol, None if worth is None else other.sign * worth
        if account is None or account.orders is not None:
            return
        entries = self.ledger.entries(self.since, 2 * self.now - self.since)
        for symbol, sign in dict.fromkeys((entry.order.symbol, entry.order.sign) for entry in entries):
            sent = [entry for entry in entries if (entry.order.symbol, entry.order.sign) == (symbol, sign)]
            worth, held = sum(entry.notional or 0.0 for entry in sent), account.positions.get(symbol)
            if held is not None:
                worth -= units_moved(sent, held.quantity) * (self.unit(symbol, held.price) or 0.0)
            yield symbol, sign * max(0.0, worth)


Answers = Iterator[Finding | str]  # a finding, or the name of a check that could not be asked


def find_halts(seen: OrderContext) -> Answers:
    """Kill switch, loss of the day, drawdown, and losses one after another."""
    envelope, account = seen.settings.envelope, seen.account
    if envelope.kill_switch or seen.ledger.killed:
        yield _block("kill_switch", "the kill switch is on; only the operator releases it")
    if account is not None and account.equity <= 0:
        yield _block("account_gone", f"equity is {account.equity!r}: nothing is left to open with")
    if account is None or account.day_result is None:
        yield "daily_loss"
    else:
        start, most = account.equity - account.day_result, envelope.max_daily_loss
        loss = -account.day_result / start if start > 0 else 0.0
        if loss >= most:
            text = f"the day has lost {loss:.2%} of equity, the limit is {most:.2%}"
            yield _block("daily_loss_reached", text)
    if account is None or account.drawdown is None:
        yield "max_drawdown"
    elif account.drawdown >= (most := envelope.max_drawdown):
        text = f"equity is {account.drawdown:.2%} below its peak, the limit is {most:.2%}"
        yield _block("drawdown_reached", text)
    losses = seen.ledger.losses_in_a_row()
    left = max((row["closed_at"] for row in losses), default=0) + DAY_NS - seen.now
    if len(losses) >= envelope.max_consecutive_losses and left > 0:
        text = f"the last {len(losses)} settled orders lost, which is the limit"
        yield _block("losses_in_a_row", f"{text}: wait {left / HOUR_NS:.1f} h, or let a person approve it")


def find_forbidden(seen: OrderContext) -> Answers:
    """Symbols, directions and times that are not traded."""
    envelope, name, direction = seen.settings.envelope, seen.order.symbol, seen.order.direction
    allowed = envelope.allowed_symbols
    if allowed and name not in allowed:
        text = f"symbol {name!a} is not among {', '.join(allowed)}.{nearest(name, allowed)}"
        yield _block("symbol_not_allowed", text)
    elif not allowed and not (name.isascii() and name.isprintable() and name == name.strip()):
        yield _block("symbol_not_allowed", f"symbol {name!a} is no plain text: allow it by name")
    elif not allowed:
        yield "symbol"
    if direction not in envelope.allowed_directions:
        among = ", ".join(envelope.allowed_directions)
        yield _block("direction_not_allowed", f"direction {direction!r} is not among {among}")
    for zone in envelope.no_learn_zones:
        if zone.touches(name, seen.now, seen.now + 1):
            yield _block("no_learn_zone_active", f"now lies in the no-learn zone {zone.reason!a}")
    for reason in no_trade_reasons(seen.now, name, envelope.no_trade_windows):
        yield _block("no_trade_window", f"now lies in the no-trade window {reason!a}")


def find_bad_bars(seen: OrderContext) -> Answers:
    """Bars that end too long ago, or whose last close no market made."""
    facts, limits = seen.facts, seen.limits
    if facts is None:
        yield from ("staleness", "bar_jump")
        return
    if facts.missed is None:
        yield "staleness"
    elif facts.missed > (most := seen.settings.reflection.max_staleness_bars):
        yield _block("stale_bars", f"{facts.missed} bars are missing up to now, the limit is {most}")
    before = seen.ledger.closes.get((seen.order.symbol, facts.timeframe, facts.label), facts.close)
    if abs(before / facts.close - 1.0) > ROUNDING:
        text = f"the last bar closed at {before!r} when it was shown first, now at {facts.close!r}"
        small = abs(before - facts.close) < CHANGED_ATR * (facts.atr or 0.0)
        yield _block("bars_changed", text, Severity.INFO if small else Severity.BLOCKER)
    if limits.bar_jump_atr is not None and facts.jump is None:
        yield "bar_jump"
    elif limits.bar_jump_atr is not None and (facts.jump or 0.0) > limits.bar_jump_atr:
        far = f"{facts.jump:.1f} ATR from the one before, the limit is {limits.bar_jump_atr:g}"
        yield _block("last_price_implausible", f"the last close {facts.close!r} lies {far}")


def list_caps(seen: OrderContext) -> Iterator[tuple[str, float, str]]:
    """(code, most, words) of each limit on what an order is worth, in account currency."""
    order, limits, envelope, account = seen.order, seen.limits, seen.settings.envelope, seen.account
    if limits.max_notional is not None:
        yield "notional_over_limit", limits.max_notional, "the limit of one order"
    if account is None or account.equity <= 0:
        return
    if seen.needs_cash and account.cash is not None:
        yield "cash_too_low", max(0.0, account.cash), "cash"
    equity, share = account.equity, limits.max_share_of_equity
    if share is not None:
        yield "share_of_equity_over_limit", share * equity, f"{share:.0%} of equity"
    held = seen.exposures(equity)
    own = held.get(order.symbol, 0.0) * order.sign
    for name, most, there in (
        ("gross", envelope.max_gross_exposure, sum(map(abs, held.values())) - abs(own) + own),
        ("symbol", envelope.max_symbol_exposure, own),
        ("net", envelope.max_net_exposure, sum(held.values()) * order.sign),
    ):
        text = f"{name} exposure is {there:.2f} of equity, at most {most:g} may be"
        yield f"{name}_exposure_over_limit", max(0.0, most - there) * equity, text
    if seen.price is not None and order.stop is not None and (gap := abs(seen.price - order.stop)):
        text = f"{envelope.risk_cap:.2%} of equity at the stop"
        yield "risk_over_cap", envelope.risk_cap * equity / gap * seen.price, text


def find_sizes(seen: OrderContext) -> Answers:
    """What the order is worth, against the account, the envelope, its stop and what is usual."""
    order, worth = seen.order, seen.notional
    if seen.account is None or worth is None:
        yield from ("exposure", "share_of_equity")
    elif any(there is None for _, there in seen.list_open()):
        yield "exposure"
    if seen.account is None or seen.risk is None:
        yield "risk"
    if seen.needs_cash and (seen.account is None or seen.account.cash is None):
        yield "cash"
    if worth is None:
        yield "notional"
        return
    by_units = order.quantity is not None
    for code, most, text in list_caps(seen):
        if worth > most * (1.0 + ROUNDING):
            value = _round_down(most / (seen.unit(order.symbol, seen.price) or 1.0) if by_units else most)
            remedy = Remedy(field="quantity" if by_units else "notional", op="at_most", value=value)
            text = f"the order is worth {worth:.6g}, at most {most:.6g} may be: {text}"
            yield _revise(code, text, remedy if value > 0 else None)


def find_repeats(seen: OrderContext) -> Answers:
    """Too many entries, the same order again, adds to a position that loses, and exits that go beyond it."""
    order, limits, ledger, account = seen.order, seen.limits, seen.ledger, seen.account
    day = seen.now // DAY_NS * DAY_NS
    most_an_hour = seen.settings.envelope.max_entries_per_hour
    for most, since, until, text in (
        (limits.entries_a_day, day, day + DAY_NS, "UTC day"),
        (most_an_hour, seen.now - HOUR_NS, seen.now + HOUR_NS, "last hour"),
    ):
        if most and (count := len(ledger.entries(since, until))) >= most:
            yield _block("too_many_entries", f"{count} entries of the {text}, the limit is {most}")
    window_s = limits.duplicate_window_s
    if before := ledger.last_like(seen.checked, seen.since):
        left_s = window_s - (seen.now - before.at) / NS
        text = f"the same order passed as {before.id} less than {window_s:g} s ago: wait {left_s:.0f} s"
        yield _block("duplicate_order", text)
    if account is None:
        yield from ("averaging_down", "flip")
    elif seen.position * order.sign > 0 and limits.averaging_down is not None:
        adds, most_adds = ledger.count_adds(order.symbol), limits.averaging_down
        if seen.price is None:
            yield "averaging_down"
        elif (seen.price - account.positions[order.symbol].price) * order.sign < 0 and adds >= most_adds:
            text = f"the position loses, and {adds} adds to it passed: at most {most_adds} may"
            yield _block("averaging_down", text)
    elif seen.position * order.sign < 0:
        left = seen.left_to_close
        text = f"the order may close more than the {left:.6g} units that are left"
        if left < abs(seen.position):
            companion = f"{order.kind} orders that rest, or passed less than {window_s:g} s ago"
            text += f" of {abs(seen.position):.6g} beside {companion} (a stop waits for none)"
        text += ": close them by quantity first"
        remedy = Remedy(field="quantity", op="at_most", value=left)
        yield _revise("exit_larger_than_position", text, remedy if left > 0 else None)
    if limits.ask_first_order and not ledger.entries(day, day + DAY_NS):
        yield _block("first_order_of_the_day", "a person approves the first entry of a day: ask for it")


def find_bad_price(seen: OrderContext) -> Answers:
    """A price in another unit, or far through the market."""
    price, facts, sign, limits = seen.order.price, seen.facts, seen.order.sign, seen.limits
    if facts is None or price is None:
        if facts is None:
            yield "price_collar"
        return
    close, collar, through = facts.close, limits.price_collar, limits.price_through
    gap, kind = price / close - 1.0, seen.order.kind
    through = through if kind == "limit" and gap * sign > 0 else None
    is_behind = kind == "stop" and gap * sign <= 0
    widest = 0.0 if is_behind else min(edge for edge in (collar, through, abs(gap)) if edge is not None)
    remedy = bound("price", gap < 0 or (is_behind and sign > 0), close * (1.0 + copysign(widest, gap)))
    if collar is not None and abs(gap) > collar + ROUNDING:
        text = f"price {price!r} is {price / close:.3g} times the last close {close!r}"
        yield _revise("price_outside_collar", text, remedy)
    elif through is not None and gap * sign > through + ROUNDING:
        text = f"the limit {price!r} reaches {gap * sign:.1%} through the last close {close!r}"
        yield _revise("limit_through_market", text, remedy)
    elif is_behind:
        text = f"a stop order to {seen.order.side} at {price!r} is through the last close {close!r} already"
        yield _revise("entry_on_wrong_side", text, remedy)


def find_bad_levels(seen: OrderContext) -> Answers:
    """A stop that is missing, too near or too far, and levels on the wrong side of the price."""
    order, price, sign = seen.order, seen.price, seen.order.sign
    atr = None if seen.facts is None else seen.facts.atr
    least, most = _stop_range(seen, price or 0.0, atr)
    if order.stop is None and seen.limits.needs_stop:
        gap = 0.0 if price is None or atr is None else min(max(2.0 * atr, least * 1.01), most * 0.99)
        near = float(f"{price - sign * gap:.6g}") if price and gap else 0.0
        text = "the order has no stop" + (f": this one is {gap:.6g} away" if near > 0 else ": give its price")
        remedy = Remedy(field="stop", op="equals", value=near) if near > 0 else None
        yield _revise("missing_stop", text, remedy)
    if price is None:
        yield from ("levels", "stop_distance") if order.stop or order.target else ()
        return
    for name, level, side, other in (
        ("stop", order.stop, -sign, least),
        ("target", order.target, sign, 0.0),
    ):
        if level is not None and (level - price) * side <= 0:
            text = f"the {name} {level!r} of an order to {order.side} lies on the wrong side of {price!r}"
            yield _revise(f"{name}_on_wrong_side", text, bound(name, side > 0, price + side * other, other))
    if order.stop is None:
        return
    if atr is None:
        yield "stop_distance"
    distance = abs(price - order.stop)
    text = f"the stop lies {distance / price:.1%} away" + (f", {distance / atr:.2f} ATR" if atr else "")
    if distance > most * (1.0 + ROUNDING):
        yield _revise("stop_too_far", text, bound("stop", sign > 0, price - sign * most, most))
    elif distance < least * (1.0 - ROUNDING):
        yield _revise("stop_too_near", text, bound("stop", sign < 0, price - sign * least, least))


def _stop_range(seen: OrderContext, price: float, atr: float | None) -> tuple[float, float]:
    """The least and the most distance of a stop, as far as they are known."""
    limits, spread = seen.limits, seen.settings.execution.spread_bps * 1e-4 * price
    if atr is None:
        return spread, price
    return max(spread, (limits.stop_atr_least or 0.0) * atr), min(price, (limits.stop_atr_most or inf) * atr)


CRITICS: tuple[Callable[[OrderContext], Answers], ...] = (
    find_halts, find_forbidden, find_bad_bars, find_sizes, find_repeats, find_bad_price, find_bad_levels,
)  # fmt: skip


def check_limits(seen: OrderContext) -> tuple[list[Finding], list[str]]:
    """What the limits found, and which of them could not be asked, both in their order."""
    answers = [answer for critic in CRITICS for answer in critic(seen)]
    found = [answer for answer in answers if isinstance(answer, Finding)]
    return found, [answer for answer in answers if isinstance(answer, str)]


def _round_down(value: float) -> float:
    """Six figures of a size, never more than it."""
    unit = 10.0 ** (5 - floor(log10(value))) if value > 0 else 1.0
    return floor(value * unit) / unit


def bound(field: str, least: bool, value: float, scale: float | None = None) -> Remedy | None:
    """A price beyond a boundary, which itself may be wrong, by a small part of the scale or of itself."""
    op: Literal["at_least", "at_most"] = "at_least" if least else "at_most"
    value += (BEYOND if least else -BEYOND) * (scale or value)
    return Remedy(field=field, op=op, value=value) if value > 0 else None


def _block(code: str, message: str, severity: Severity = Severity.BLOCKER) -> Finding:
    return Finding(check=CheckName.INVARIANT, code=code, severity=severity, message=message)


def _revise(code: str, message: str, remedy: Remedy | None = None) -> Finding:
    return Finding(
        check=CheckName.COHERENCE, code=code, severity=Severity.MAJOR, message=message, remedy=remedy
    )
