"""Limits of single orders: pure critics on one value, in the order of the fast reflection.

A critic yields findings, and the name of each check whose input is missing. What only lowers the exposure of
its symbol is asked none of them: an exit is never trapped.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import copysign, floor, log10
from typing import Literal

from schemas.errors import nearest
from schemas.guard import Account, BarFacts, GuardLimits, GuardSettings, Order
from schemas.reflection import Finding, Remedy
from schemas.vocabulary import CheckName, Severity
from services.guard.ledger import DAY_NS, NS, Ledger
from trading_core.kernel.flags import no_trade_reasons

ROUNDING = 1e-9
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

    @cached_property
    def price(self) -> float | None:
        """At which the order will fill, as far as that is known."""
        if self.order.kind != "market" or self.facts is None:
            return self.order.price
        return self.facts.close

    @cached_property
    def quantity(self) -> float | None:
        """Units; None where they depend on an unknown price."""
        return self.order.quantity_at(self.price)

    @cached_property
    def notional(self) -> float | None:
        """In quote currency; None where it depends on an unknown price."""
        if self.order.quantity is None or self.price is None:
            return self.order.notional
        return self.order.quantity * self.price

    @property
    def risk(self) -> float | None:
        """What the stop would cost, in quote currency; None where that is not known."""
        if self.order.stop is None or self.price is None or self.quantity is None:
            return None
        return abs(self.price - self.order.stop) * self.quantity

    @cached_property
    def position(self) -> float:
        """Units of the symbol that are held, below zero where short."""
        held = None if self.account is None else self.account.positions.get(self.order.symbol)
        return 0.0 if held is None else held.quantity

    @cached_property
    def left_to_close(self) -> float:
        """Units by which the order may lower the position: what other orders close is taken off.

        A stop protects what another order closes, so it counts against another stop only. Where open orders
        are not known, exits that passed within the window of duplicates count.
        """
        order, working = self.order, 0.0
        if self.account is None or self.position * order.sign >= 0:
            return 0.0
        if self.account.orders is None:
            since = self.now - int((self.limits.duplicate_window_s or 0.0) * NS)
            working = self.ledger.closing(order.symbol, self.position, since)
        for other in self.account.orders or ():
            counts = other.kind != "stop" or order.kind == "stop"
            if counts and (other.symbol, other.sign) == (order.symbol, order.sign):
                working += other.quantity_at(other.price or self.price) or abs(self.position)
        return max(0.0, abs(self.position) - working)

    @cached_property
    def reduces(self) -> bool:
        """Whether it only lowers the exposure of its symbol; what an agent expects to be paid is no price."""
        is_known = self.order.quantity is not None or self.facts is not None or self.order.kind != "market"
        amount = self.quantity if is_known else None
        return amount is not None and 0.0 < amount <= self.left_to_close * (1.0 + ROUNDING)

    def exposures(self, equity: float) -> dict[str, float]:
        """Value of each position over equity, below zero where short, with open orders that add to it."""
        found: dict[str, float] = {}
        for symbol, held in () if self.account is None else self.account.positions.items():
            own = self.price if symbol == self.order.symbol else None
            found[symbol] = held.quantity * (own or held.price) / equity
        for other in () if self.account is None else self.account.orders or ():
            price = other.price or (self.price if other.symbol == self.order.symbol else None)
            worth = other.notional or (other.quantity or 0.0) * (price or 0.0)
            share, there = other.sign * worth / equity, found.get(other.symbol, 0.0)
            found[other.symbol] = there + share if there * share >= 0 else there
        return found


Answers = Iterator[Finding | str]  # a finding, or the name of a check that could not be asked


def find_halts(seen: OrderContext) -> Answers:
    """Kill switch, loss of the day, drawdown, and losses one after another."""
    envelope, limits, account = seen.settings.envelope, seen.limits, seen.account
    if envelope.kill_switch:
        yield _block("kill_switch", "the kill switch is on; only the operator releases it")
    if account is None or account.day_result is None:
        yield "daily_loss"
    else:
        start, most = account.equity - account.day_result, limits.daily_loss or envelope.max_daily_loss
        loss = -account.day_result / start if start > 0 else 0.0
        if loss >= most:
            yield _block(
                "daily_loss_reached", f"the day has lost {loss:.2%} of equity, the limit is {most:.2%}"
            )
    if account is None or account.drawdown is None:
        yield "max_drawdown"
    elif account.drawdown >= (most := limits.max_drawdown or envelope.max_drawdown):
        text = f"equity is {account.drawdown:.2%} below its peak, the limit is {most:.2%}"
        yield _block("drawdown_reached", text)
    if (lost := seen.ledger.losses_in_a_row) >= envelope.max_consecutive_losses:
        yield _block("losses_in_a_row", f"the last {lost} settled orders lost, which is the limit")


def find_forbidden(seen: OrderContext) -> Answers:
    """Symbols, directions and times that are not traded."""
    envelope, name, direction = seen.settings.envelope, seen.order.symbol, seen.order.direction
    allowed = envelope.allowed_symbols
    if allowed and name not in allowed:
        text = f"symbol {name!a} is not among {', '.join(allowed)}.{nearest(name, allowed)}"
        yield _block("symbol_not_allowed", text)
    elif not allowed and not (name.isascii() and name.isprintable()):
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
    age_s, longest_s = (seen.now - facts.known_at) / NS, limits.stale_after_s
    most = seen.settings.reflection.max_staleness_bars
    if longest_s is not None and age_s > longest_s:
        yield _block("stale_bars", f"the last bar closed {age_s:,.0f} s ago, the limit is {longest_s:,.0f} s")
    elif longest_s is None and facts.missed > most:
        yield _block("stale_bars", f"{facts.missed} bars are missing up to now, the limit is {most}")
    before = seen.ledger.closes.get((seen.order.symbol, facts.timeframe, facts.label), facts.close)
    if abs(before / facts.close - 1.0) > ROUNDING:
        text = f"the last bar closed at {before!r} when it was shown before, now at {facts.close!r}"
        yield _block("bars_changed", text)
    if limits.bar_jump_atr is not None and facts.jump is None:
        yield "bar_jump"
    elif limits.bar_jump_atr is not None and (facts.jump or 0.0) > limits.bar_jump_atr:
        far = f"{facts.jump:.1f} ATR from the one before, the limit is {limits.bar_jump_atr:g}"
        yield _block("last_price_implausible", f"the last close {facts.close!r} lies {far}")


def list_caps(seen: OrderContext) -> Iterator[tuple[str, float, str]]:
    """(code, most, words) of each limit on what an order is worth, in quote currency."""
    order, limits, envelope, account = seen.order, seen.limits, seen.settings.envelope, seen.account
    if limits.max_notional is not None:
        yield "notional_over_limit", limits.max_notional, "the limit of one order"
    usual, times = seen.ledger.usual_notional(order.strategy), limits.max_times_usual
    if times is not None and usual is not None:
        yield "size_unusual", times * usual, f"{times:g} times the usual {usual:.6g}"
    if account is None:
        return
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
    if seen.account is None or seen.risk is None:
        yield "risk"
    if worth is None:
        yield "notional"
        return
    by_units = order.quantity is not None
    for code, most, text in list_caps(seen):
        if worth > most * (1.0 + ROUNDING):
            value = _round_down(most / (seen.price or 1.0) if by_units else most)
            remedy = Remedy(field="quantity" if by_units else "notional", op="at_most", value=value)
            text = f"the order is worth {worth:.6g}, at most {most:.6g} may be: {text}"
            yield _revise(code, text, remedy if value > 0 else None)


def find_repeats(seen: OrderContext) -> Answers:
    """Too many entries, the same order again, adds to a position that loses, and exits that go beyond it."""
    order, limits, ledger, account = seen.order, seen.limits, seen.ledger, seen.account
    day = seen.now // DAY_NS * DAY_NS
    most_an_hour = seen.settings.envelope.max_entries_per_hour
    for most, since, text in (
        (limits.entries_a_day, day, "UTC day"), (most_an_hour, seen.now - HOUR_NS, "last hour")
    ):  # fmt: skip
        if most and (count := ledger.count_entries(since)) >= most:
            yield _block("too_many_entries", f"{count} entries of the {text}, the limit is {most}")
    before, window_s = ledger.last_like(order), limits.duplicate_window_s or 0.0
    if before is not None and (left_s := window_s - (seen.now - before.at) / NS) > 0:
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
        text = (
            f"the order may close more than the {left:.6g} units that are left: close them by quantity first"
        )
        remedy = Remedy(field="quantity", op="at_most", value=left)
        yield _revise("exit_larger_than_position", text, remedy if left > 0 else None)
    if limits.ask_first_order and not ledger.count_entries(day):
        yield _block("first_order_of_the_day", "a person approves the first entry of a day: ask for it")


def find_bad_price(seen: OrderContext) -> Answers:
    """A price in another unit, or far through the market."""
    price, facts, sign, limits = seen.order.price, seen.facts, seen.order.sign, seen.limits
    if facts is None or price is None:
        if facts is None:
            yield "price_collar"
        return
    close, collar, through = facts.close, limits.price_collar, limits.price_through
    gap = price / close - 1.0
    if collar is not None and abs(gap) > collar + ROUNDING:
        text = f"price {price!r} is {price / close:.3g} times the last close {close!r}"
        yield _revise(
            "price_outside_collar", text, _bound("price", gap < 0, close * (1.0 + copysign(collar, gap)))
        )
    elif seen.order.kind == "limit" and through is not None and gap * sign > through + ROUNDING:
        text = f"the limit {price!r} reaches {gap * sign:.1%} through the last close {close!r}"
        yield _revise("limit_through_market", text, _bound("price", sign < 0, close * (1.0 + sign * through)))
    elif seen.order.kind == "stop" and gap * sign <= 0:
        text = f"a stop order to {seen.order.side} at {price!r} is through the last close {close!r} already"
        yield _revise("entry_on_wrong_side", text, _bound("price", sign > 0, close))


def find_bad_levels(seen: OrderContext) -> Answers:
    """A stop that is missing, too near or too far, and levels on the wrong side of the price."""
    order, price, limits, sign = seen.order, seen.price, seen.limits, seen.order.sign
    atr = None if seen.facts is None else seen.facts.atr
    if order.stop is None and limits.needs_stop:
        near = 0.0 if price is None or atr is None else float(f"{price - sign * 2.0 * atr:.6g}")
        text = "the order has no stop" + (": this one is 2 ATR away" if near > 0 else ": give its price")
        remedy = Remedy(field="stop", op="equals", value=near) if near > 0 else None
        yield _revise("missing_stop", text, remedy)
    if price is None:
        yield from ("levels", "stop_distance") if order.stop or order.target else ()
        return
    for name, level, side in (("stop", order.stop, -sign), ("target", order.target, sign)):
        if level is not None and (level - price) * side <= 0:
            text = f"the {name} {level!r} of an order to {order.side} lies on the wrong side of {price!r}"
            yield _revise(f"{name}_on_wrong_side", text, _bound(name, side > 0, price))
    if order.stop is None:
        return
    distance, spread = abs(price - order.stop), seen.settings.execution.spread_bps * 1e-4 * price
    most, least = (limits.stop_share_most or 1.0) * price, spread
    if atr is None:
        yield "stop_distance"
    else:
        most = min(most, (limits.stop_atr_most or most / atr) * atr)
        least = max(spread, (limits.stop_atr_least or 0.0) * atr)
    in_atr = "" if atr is None else f", {distance / atr:.2f} ATR"
    text = f"the stop lies {distance / price:.1%} away{in_atr}"
    if distance > most * (1.0 + ROUNDING):
        yield _revise("stop_too_far", text, _bound("stop", sign > 0, price - sign * most))
    elif distance < least * (1.0 - ROUNDING):
        yield _revise("stop_too_near", text, _bound("stop", sign < 0, price - sign * least))


CRITICS: tuple[Callable[[OrderContext], Answers], ...] = (
    find_halts, find_forbidden, find_bad_bars, find_sizes, find_repeats, find_bad_price, find_bad_levels,
)  # fmt: skip
# Checks that may lack their input, by the names that `not_checked` and `required` have.
CHECKS: Mapping[str, str] = {
    "daily_loss": "account.day_result",
    "max_drawdown": "account.drawdown",
    "symbol": "envelope.allowed_symbols",
    "staleness": "bars",
    "bar_jump": "16 bars",
    "exposure": "account, and a price or bars",
    "share_of_equity": "account, and a price or bars",
    "risk": "account, and a price or bars",
    "notional": "a price or bars",
    "averaging_down": "account, and a price or bars",
    "flip": "account",
    "price_collar": "bars",
    "levels": "a price or bars",
    "stop_distance": "15 bars",
    "coherence": "bars and a stop",
    "memory": "bars, a stop, and settled orders of the strategy",
    "expectation": "bars, a stop, and settled orders of the strategy",
}


def check_limits(seen: OrderContext) -> tuple[list[Finding], list[str]]:
    """What the limits found, and which of them could not be asked, both in their order."""
    answers = [answer for critic in CRITICS for answer in critic(seen)]
    found = [answer for answer in answers if isinstance(answer, Finding)]
    return found, [answer for answer in answers if isinstance(answer, str)]


def _round_down(value: float) -> float:
    """Six figures of a size, never more than it."""
    unit = 10.0 ** (5 - floor(log10(value))) if value > 0 else 1.0
    return floor(value * unit) / unit


def _bound(field: str, least: bool, value: float) -> Remedy | None:
    op: Literal["at_least", "at_most"] = "at_least" if least else "at_most"
    return Remedy(field=field, op=op, value=value) if value > 0 else None


def _block(code: str, message: str) -> Finding:
    return Finding(check=CheckName.INVARIANT, code=code, severity=Severity.BLOCKER, message=message)


def _revise(code: str, message: str, remedy: Remedy | None = None) -> Finding:
    return Finding(
        check=CheckName.COHERENCE, code=code, severity=Severity.MAJOR, message=message, remedy=remedy
    )
