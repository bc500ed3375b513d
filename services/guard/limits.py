"""Limits of single orders: pure critics on one value, in the order of the fast reflection.

A critic says what is wrong, None where nothing is, or `UNKNOWN` where its input is missing. What only lowers
the exposure of its symbol is asked none of them: an exit is never trapped.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import floor, log10
from typing import Final, Literal

from schemas.errors import nearest
from schemas.guard import Account, GuardLimits, GuardSettings, Order
from schemas.reflection import Finding, Remedy
from schemas.vocabulary import CheckName, Severity
from services.guard.ledger import DAY_NS, NS, Ledger
from trading_core.kernel.flags import no_trade_reasons

UNKNOWN: Final = "unknown"
Unknown = Literal["unknown"]
ROUNDING = 1e-9
HOUR_NS = 3_600 * NS


@dataclass(frozen=True)
class BarFacts:
    """What the bars of the order's symbol say at the moment of the check; times in ns.

    Attributes:
        bars: their hash.
        label, known_at: of the last closed bar.
        close, atr: of it; ATR(14) in price, None before there are so many bars.
        jump: close against the one before, in ATR before it; None where that is not known.
        missed: bars that should have closed since, by the week before.
    """

    bars: str
    timeframe: str
    label: int
    known_at: int
    close: float
    atr: float | None
    jump: float | None
    missed: int


@dataclass(frozen=True)
class OrderContext:
    """Everything that the limits look at."""

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
        if self.order.kind != "market":
            return self.order.price
        if self.facts is not None:
            return self.facts.close
        return self.order.price

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
        """Units by which the order may lower the position: what open orders close is taken off.

        A stop protects what another order closes, so it counts against another stop only.
        """
        order, working = self.order, 0.0
        if self.account is None or self.position * order.sign >= 0:
            return 0.0
        if self.account.orders is None:
            working = self.ledger.closing(order.symbol, self.position, self._window_start)
        for other in self.account.orders or ():
            if other.symbol == order.symbol and other.sign == order.sign:
                counts = other.kind != "stop" or order.kind == "stop"
                working += (other.quantity_at(other.price or self.price) or 0.0) if counts else 0.0
        return max(0.0, abs(self.position) - working)

    @cached_property
    def reduces(self) -> bool:
        """Whether it only lowers the exposure of its symbol."""
        amount = self.order.quantity_at(self.price or self._held_price)
        return amount is not None and 0.0 < amount <= self.left_to_close * (1.0 + ROUNDING)

    @property
    def _held_price(self) -> float | None:
        held = None if self.account is None else self.account.positions.get(self.order.symbol)
        return None if held is None else held.price

    @property
    def _window_start(self) -> int:
        return self.now - int((self.limits.duplicate_window_s or 0.0) * NS)

    def exposures(self) -> Mapping[str, float]:
        """Value of each position over equity, below zero where short; open orders that add are in it."""
        if self.account is None:
            return {}
        found: dict[str, float] = {}
        for symbol, held in self.account.positions.items():
            own = self.price if symbol == self.order.symbol else None
            found[symbol] = held.quantity * (own or held.price) / self.account.equity
        for other in self.account.orders or ():
            price = other.price or (self.price if other.symbol == self.order.symbol else None)
            amount = other.notional or (other.quantity_at(price) or 0.0) * (price or 0.0)
            share = other.sign * amount / self.account.equity
            if found.get(other.symbol, 0.0) * share >= 0:
                found[other.symbol] = found.get(other.symbol, 0.0) + share
        return found


Answer = Finding | Unknown | None
LimitCritic = Callable[[OrderContext], Answer]


def kill_switch(seen: OrderContext) -> Answer:
    """The operator's kill switch."""
    on = seen.settings.envelope.kill_switch
    return _block("kill_switch", "the kill switch is on; only the operator releases it") if on else None


def daily_loss(seen: OrderContext) -> Answer:
    """The loss of the day against equity at its start."""
    limit = seen.limits.daily_loss or seen.settings.envelope.max_daily_loss
    if seen.account is None or seen.account.day_result is None:
        return UNKNOWN
    start = seen.account.equity - seen.account.day_result
    loss = -seen.account.day_result / start if start > 0 else 1.0
    if loss < limit:
        return None
    return _block("daily_loss_reached", f"the day has lost {loss:.2%} of equity, the limit is {limit:.2%}")


def max_drawdown(seen: OrderContext) -> Answer:
    """The fall from the peak of equity."""
    limit = seen.limits.max_drawdown or seen.settings.envelope.max_drawdown
    if seen.account is None or seen.account.drawdown is None:
        return UNKNOWN
    fall = seen.account.drawdown
    if fall < limit:
        return None
    return _block("drawdown_reached", f"equity is {fall:.2%} below its peak, the limit is {limit:.2%}")


def losses_in_a_row(seen: OrderContext) -> Answer:
    """Settled orders that lost, one after another."""
    lost, limit = seen.ledger.losses_in_a_row, seen.settings.envelope.max_consecutive_losses
    if lost < limit:
        return None
    return _block("losses_in_a_row", f"the last {lost} settled orders lost, the limit is {limit}")


def symbol(seen: OrderContext) -> Answer:
    """Symbols outside the allowed list; without a list, letters that look like others."""
    name, allowed = seen.order.symbol, seen.settings.envelope.allowed_symbols
    if allowed:
        if name in allowed:
            return None
        text = f"symbol {name!r} is not among {', '.join(allowed)}.{nearest(name, allowed)}"
        return _block("symbol_not_allowed", text)
    if name.isascii() and name.isprintable() and not name.isspace():
        return UNKNOWN
    return _block("symbol_not_allowed", f"symbol {ascii(name)} is no plain text: allow it by name")


def direction(seen: OrderContext) -> Answer:
    """Directions that the account may not take."""
    allowed, asked = seen.settings.envelope.allowed_directions, seen.order.direction
    if asked in allowed:
        return None
    return _block("direction_not_allowed", f"direction {asked!r} is not among {', '.join(allowed)}")


def closed_times(seen: OrderContext) -> Answer:
    """No-learn zones and windows without entries."""
    envelope, name = seen.settings.envelope, seen.order.symbol
    for zone in envelope.no_learn_zones:
        if zone.touches(name, seen.now, seen.now + 1):
            return _block("no_learn_zone_active", f"now lies in the no-learn zone {zone.reason!r}")
    if reasons := no_trade_reasons(seen.now, name, envelope.no_trade_windows):
        return _block("no_trade_window", f"now lies in the no-trade window {reasons[0]!r}")
    return None


def staleness(seen: OrderContext) -> Answer:
    """Bars that end too long ago."""
    if seen.facts is None:
        return UNKNOWN
    age_s, longest_s = (seen.now - seen.facts.known_at) / NS, seen.limits.stale_after_s
    if longest_s is not None:
        if age_s <= longest_s:
            return None
        return _block("stale_bars", f"the last bar closed {age_s:,.0f} s ago, the limit is {longest_s:,.0f}")
    most = seen.settings.reflection.max_staleness_bars
    if seen.facts.missed <= most:
        return None
    return _block("stale_bars", f"{seen.facts.missed} bars are missing up to now, the limit is {most}")


def bar_jump(seen: OrderContext) -> Answer:
    """A last close that no market made: far from the one before, or not the one shown before."""
    if seen.facts is None:
        return UNKNOWN
    before = seen.ledger.closes.get((seen.order.symbol, seen.facts.timeframe, seen.facts.label))
    if before is not None and abs(before / seen.facts.close - 1.0) > ROUNDING:
        was = f"the bar closed at {_figure(before)} when it was shown before, now at {seen.facts.close!r}"
        return _block("bars_changed", was)
    limit = seen.limits.bar_jump_atr
    if limit is None:
        return None
    if seen.facts.jump is None:
        return UNKNOWN
    if seen.facts.jump <= limit:
        return None
    far = f"{seen.facts.jump:.1f} ATR from the one before, the limit is {limit:g}"
    return _block("last_price_implausible", f"the last close {seen.facts.close!r} lies {far}")


def notional(seen: OrderContext) -> Answer:
    """The most that one order may be worth."""
    limit = seen.limits.max_notional
    return None if limit is None else _at_most(seen, "notional_over_limit", limit, "the limit of one order")


def share_of_equity(seen: OrderContext) -> Answer:
    """The most that one order may be worth, over equity."""
    share = seen.limits.max_share_of_equity
    if share is None:
        return None
    if seen.account is None:
        return UNKNOWN
    return _at_most(seen, "share_of_equity_over_limit", share * seen.account.equity, f"{share:.0%} of equity")


def usual_size(seen: OrderContext) -> Answer:
    """A size far beyond those that the strategy had so far."""
    times, usual = seen.limits.max_times_usual, seen.ledger.usual_notional(seen.order.strategy)
    if times is None or usual is None:
        return None
    return _at_most(seen, "size_unusual", times * usual, f"{times:g} times the usual {_figure(usual)}")


def exposure(seen: OrderContext) -> Answer:
    """Gross and net exposure, and that of the symbol, with the order in it."""
    if seen.account is None or seen.notional is None:
        return UNKNOWN
    envelope, held, name = seen.settings.envelope, seen.exposures(), seen.order.symbol
    added, own = seen.order.sign * seen.notional / seen.account.equity, held.get(name, 0.0)
    gross = sum(abs(share) for other, share in held.items() if other != name)
    net = sum(held.values())
    rooms = {
        "gross_exposure_over_limit": envelope.max_gross_exposure - gross - own * seen.order.sign,
        "symbol_exposure_over_limit": envelope.max_symbol_exposure - own * seen.order.sign,
        "net_exposure_over_limit": envelope.max_net_exposure - net * seen.order.sign,
    }
    code = min(rooms, key=lambda name: rooms[name])
    if abs(added) <= rooms[code] * (1.0 + ROUNDING):
        return None
    room = max(0.0, rooms[code]) * seen.account.equity
    return _at_most(seen, code, room, "what the envelope has room for")


def risk(seen: OrderContext) -> Answer:
    """What the stop would cost, over equity."""
    stop, cap = seen.order.stop, seen.settings.envelope.risk_cap
    if stop is None:
        return None
    if seen.account is None or seen.price is None or seen.risk is None:
        return UNKNOWN
    most = cap * seen.account.equity
    if seen.risk <= most * (1.0 + ROUNDING):
        return None
    lost, room = seen.risk / seen.account.equity, most / abs(seen.price - stop) * seen.price
    return _at_most(seen, "risk_over_cap", room, f"{cap:.2%} of equity at the stop, not {lost:.2%}")


def entries(seen: OrderContext) -> Answer:
    """Entries of the UTC day, and of the last hour."""
    day, hour = seen.limits.entries_a_day, seen.settings.envelope.max_entries_per_hour
    for most, since, word in (
        (day, seen.now // DAY_NS * DAY_NS, "UTC day"),
        (hour, seen.now - HOUR_NS, "last hour"),
    ):
        if most and (count := seen.ledger.count_entries(since)) >= most:
            return _block("too_many_entries", f"{count} entries of the {word}, the limit is {most}")
    return None


def duplicate(seen: OrderContext) -> Answer:
    """The same order again, whatever its reasons and its strategy are called."""
    window_s = seen.limits.duplicate_window_s
    if window_s is None:
        return None
    before = seen.ledger.last_like(seen.order)
    if before is None or seen.now - before.at >= window_s * NS:
        return None
    wait_s = window_s - (seen.now - before.at) / NS
    text = f"the same order was let pass as {before.id} less than {window_s:g} s ago: wait {wait_s:.0f} s"
    return _block("duplicate_order", text)


def averaging_down(seen: OrderContext) -> Answer:
    """Adds to a position that loses."""
    most, sign = seen.limits.averaging_down, seen.order.sign
    if most is None:
        return None
    if seen.account is None:
        return UNKNOWN
    held = seen.account.positions.get(seen.order.symbol)
    if held is None or held.quantity * sign <= 0:
        return None
    if seen.price is None:
        return UNKNOWN
    if (seen.price - held.price) * sign >= 0:
        return None
    adds = seen.ledger.count_adds(seen.order.symbol)
    if adds < most:
        return None
    text = f"the position loses, and {adds} adds to it have passed: at most {most} may"
    return _block("averaging_down", text)


def flip(seen: OrderContext) -> Answer:
    """An order against a position that is larger than what is left of it."""
    if seen.account is None:
        return UNKNOWN
    if seen.position * seen.order.sign >= 0 or seen.reduces:
        return None
    left = seen.left_to_close
    text = f"the order closes more than the {_figure(left)} units that are left: close first, then open"
    remedy = Remedy(field="quantity", op="at_most", value=left) if left > 0 else None
    return _revise("exit_larger_than_position", text, remedy)


def needs_stop(seen: OrderContext) -> Answer:
    """A stop that is missing, with one that would pass."""
    if not seen.limits.needs_stop or seen.order.stop is not None:
        return None
    atr = None if seen.facts is None else seen.facts.atr
    if seen.price is None or atr is None:
        return _revise("missing_stop", "the order has no stop: give its price")
    level = _figure(seen.price - seen.order.sign * 2.0 * atr)
    text = f"the order has no stop: 2 ATR away lies {level}"
    return _revise("missing_stop", text, Remedy(field="stop", op="equals", value=float(level)))


def price_collar(seen: OrderContext) -> Answer:
    """A price in another unit, or far through the market."""
    price, sign = seen.order.price, seen.order.sign
    if price is None:
        return None if seen.facts is not None else UNKNOWN
    if seen.facts is None:
        return UNKNOWN
    close, collar, through = seen.facts.close, seen.limits.price_collar, seen.limits.price_through
    if collar is not None and abs(price / close - 1.0) > collar:
        times = price / close
        text = f"price {price!r} is {times:.3g} times the last close {close!r}, the collar is {collar:.0%}"
        op: Literal["at_most", "at_least"] = "at_most" if price > close else "at_least"
        edge = close * (1.0 + collar if price > close else 1.0 - collar)
        return _revise("price_outside_collar", text, Remedy(field="price", op=op, value=edge))
    if seen.order.kind == "limit" and through is not None and (price / close - 1.0) * sign > through:
        text = f"the limit {price!r} reaches {through:.0%} and more through the last close {close!r}"
        edge = close * (1.0 + sign * through)
        remedy = Remedy(field="price", op="at_most" if sign > 0 else "at_least", value=edge)
        return _revise("limit_through_market", text, remedy)
    if seen.order.kind == "stop" and (price - close) * sign <= 0:
        text = f"a stop order to {seen.order.side} at {price!r} is through the last close {close!r} already"
        return _revise("entry_on_wrong_side", text)
    return None


def levels(seen: OrderContext) -> Answer:
    """Stop and target on their sides of the price."""
    price, sign = seen.price, seen.order.sign
    for name, level, side in (("stop", seen.order.stop, -sign), ("target", seen.order.target, sign)):
        if level is None:
            continue
        if price is None:
            return UNKNOWN
        if (level - price) * side <= 0:
            op: Literal["at_most", "at_least"] = "at_least" if side > 0 else "at_most"
            text = (
                f"the {name} {level!r} of an order to {seen.order.side} lies on the wrong side of {price!r}"
            )
            return _revise(f"{name}_on_wrong_side", text, Remedy(field=name, op=op, value=price))
    return None


def stop_distance(seen: OrderContext) -> Answer:
    """How far the stop lies: inside the noise, or so far that it stops nothing."""
    stop, price, limits = seen.order.stop, seen.price, seen.limits
    if stop is None:
        return None
    if price is None:
        return UNKNOWN
    distance, most = abs(price - stop), limits.stop_share_most
    if most is not None and distance > most * price:
        text = f"the stop lies {distance / price:.0%} away, the limit is {most:.0%}"
        return _revise("stop_too_far", text, _stop_at(seen, most * price, nearer=True))
    if seen.facts is None or seen.facts.atr is None:
        return UNKNOWN
    atr = seen.facts.atr
    least = max((limits.stop_atr_least or 0.0) * atr, seen.settings.execution.spread_bps * 1e-4 * price)
    if distance < least * (1.0 - ROUNDING):
        text = f"the stop lies {distance / atr:.2f} ATR away, inside the noise"
        return _revise("stop_too_near", text, _stop_at(seen, least, nearer=False))
    farthest = limits.stop_atr_most
    if farthest is not None and distance > farthest * atr * (1.0 + ROUNDING):
        text = f"the stop lies {distance / atr:.1f} ATR away, the limit is {farthest:g}"
        return _revise("stop_too_far", text, _stop_at(seen, farthest * atr, nearer=True))
    return None


def first_order(seen: OrderContext) -> Answer:
    """The first entry of a UTC day, where a person approves it."""
    if not seen.limits.ask_first_order or seen.ledger.count_entries(seen.now // DAY_NS * DAY_NS):
        return None
    return _block("first_order_of_the_day", "a person approves the first entry of a day: ask for it")


# By the name that `not_checked` and `required` have, in order.
CRITICS: Mapping[str, LimitCritic] = {
    critic.__name__: critic
    for critic in (
        kill_switch, daily_loss, max_drawdown, losses_in_a_row, symbol, direction, closed_times, staleness,
        bar_jump, notional, share_of_equity, usual_size, exposure, risk, entries, duplicate, averaging_down,
        flip, needs_stop, price_collar, levels, stop_distance, first_order,
    )
}  # fmt: skip


def check_limits(seen: OrderContext) -> tuple[list[Finding], list[str]]:
    """What the limits found, and which of them could not be asked, both in their order."""
    answers = {name: critic(seen) for name, critic in CRITICS.items()}
    return (
        [answer for answer in answers.values() if isinstance(answer, Finding)],
        [name for name, answer in answers.items() if answer == UNKNOWN],
    )


def _at_most(seen: OrderContext, code: str, most: float, words: str) -> Answer:
    """A finding where the order is worth more; its remedy is in the field by which the order is sized."""
    if seen.notional is None:
        return UNKNOWN
    if seen.notional <= most * (1.0 + ROUNDING):
        return None
    field = "notional" if seen.order.quantity is None else "quantity"
    value = most if field == "notional" or seen.price is None else most / seen.price
    remedy = Remedy(field=field, op="at_most", value=_rounded_down(value)) if value > 0 else None
    text = f"the order is worth {_figure(seen.notional)}, at most {_figure(most)} may be: {words}"
    return _revise(code, text, remedy)


def _stop_at(seen: OrderContext, distance: float, *, nearer: bool) -> Remedy | None:
    level = (seen.price or 0.0) - seen.order.sign * distance
    op: Literal["at_most", "at_least"] = "at_least" if nearer == (seen.order.sign > 0) else "at_most"
    return Remedy(field="stop", op=op, value=level) if level > 0 else None


def _rounded_down(value: float) -> float:
    """Six figures of a size, never more than it."""
    digits = 5 - floor(log10(value))
    return floor(value * 10.0**digits) / 10.0**digits


def _figure(value: float) -> str:
    return f"{value:.6g}"


def _block(code: str, message: str) -> Finding:
    return Finding(check=CheckName.INVARIANT, code=code, severity=Severity.BLOCKER, message=message)


def _revise(code: str, message: str, remedy: Remedy | None = None) -> Finding:
    return Finding(
        check=CheckName.COHERENCE, code=code, severity=Severity.MAJOR, message=message, remedy=remedy
    )
