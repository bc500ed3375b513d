"""An independent reading of the execution rules in plain Python, written from the text of the contract.

Slow and obvious on purpose: one symbol, its present bars in a list, one position, no events. The kernel has
to agree with it trade by trade under every switch of `simulate`.
"""

import math
from dataclasses import dataclass, fields
from decimal import Decimal
from typing import Any

import numpy as np

from trading_core.bars import BarSeries


@dataclass(frozen=True)
class Rules:
    """The switches of `simulate`, under the same names."""

    direction: str = "long"
    stop_pct: float = 0.02
    target_pct: float = 0.04
    time_stop_bars: int = 50
    fee_bps: float = 5.0
    slippage_bps: float = 0.0
    quantity: float = 1.0
    fill: str = "next_open"
    level_base: str = "fill"
    entry_bar_exits: bool = True
    both_hit: str = "stop"
    gap: str = "open"
    limit_fill: str = "touch"
    time_exit: str = "open"
    reentry: bool = True
    tick_size: float = 0.0
    lot_size: float = 0.0
    maker_fee_bps: float | None = None
    fee_per_trade: float = 0.0
    fee_rounding: float = 0.0
    funding_bps: float = 0.0
    borrow_bps: float = 0.0

    def switches(self) -> dict[str, Any]:
        """Keyword arguments of `simulate`."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def sign(self) -> int:
        """+1 long, -1 short."""
        return 1 if self.direction == "long" else -1


@dataclass(frozen=True)
class OracleTrade:
    """One closed trade; rows are those of the series."""

    entry: int
    exit: int
    entry_price: float
    exit_price: float
    quantity: float
    fees: float
    pnl: float
    r: float
    mae_r: float
    mfe_r: float
    bars_held: int
    reason: str


@dataclass
class Order:
    """Accepted at a close, to fill at the next open."""

    close: float
    stop: float
    target: float
    quantity: float


@dataclass
class Position:
    """What is held, since which of the symbol's bars."""

    bar: int
    price: float
    quantity: float
    stop: float
    target: float
    risk: float
    costs: float
    worst: float = 0.0
    best: float = 0.0

    def saw(self, price: float, d: int) -> None:
        """A price of the position's life, as a move in its favour."""
        move = (price - self.price) * d
        self.worst, self.best = min(self.worst, move), max(self.best, move)


class Walk:
    """One symbol from its first bar to its last."""

    def __init__(self, rules: Rules, rows: list[int], bars: list[tuple[float, float, float, float]]) -> None:
        self.rules, self.rows, self.bars = rules, rows, bars
        self.position: Position | None = None
        self.order: Order | None = None
        self.trades: list[OracleTrade] = []

    def trade(self, signal: list[bool]) -> list[OracleTrade]:
        """Closed trades in order of exit."""
        rules = self.rules
        for k, bar in enumerate(self.bars):
            closed_before = len(self.trades)
            self._due_at_open(k, bar[0])
            if self.order is not None:
                self._open(k, bar[0], self.order)
                self.order = None
            if self.position is not None:
                self._inside(k, self.position, *bar)
            if self.position is not None:
                rate = rules.funding_bps if rules.sign > 0 else rules.borrow_bps - rules.funding_bps
                self.position.costs += self.position.quantity * bar[3] * rate * 1e-4
            may = rules.reentry or len(self.trades) == closed_before
            if self.position is None and signal[k] and may:
                self.order = self._accepted(bar[3])
                if self.order is not None and rules.fill == "close":
                    self._open(k, bar[3], self.order)
                    self.order = None
        return self.trades

    def _due_at_open(self, k: int, o: float) -> None:
        position = self.position
        if position is not None and self.rules.time_exit == "open" and self._due(k, position):
            self._close(k, o, "time_stop")

    def _due(self, k: int, position: Position) -> bool:
        return k - position.bar >= self.rules.time_stop_bars

    def _accepted(self, close: float) -> Order | None:
        d, rules = self.rules.sign, self.rules
        stop = self._tick(close * (1 - d * rules.stop_pct))
        target = self._tick(close * (1 + d * rules.target_pct))
        quantity = rules.quantity
        if rules.lot_size:
            lot = Decimal(repr(rules.lot_size))
            quantity = float(Decimal(repr(quantity)) // lot * lot)
        sides = (close - stop) * d > 0 and (target - close) * d > 0 and stop > 0 and target > 0
        return Order(close, stop, target, quantity) if sides and quantity > 0 else None

    def _open(self, k: int, raw: float, order: Order) -> None:
        d, rules = self.rules.sign, self.rules
        price = self._slipped(raw, d)
        stop, target, risk = order.stop, order.target, abs(order.close - order.stop)
        if rules.level_base == "fill":
            stop = self._tick(price * (1 - d * rules.stop_pct))
            target = self._tick(price * (1 + d * rules.target_pct))
            risk = abs(price - stop) or risk
        fee = self._fee(order.quantity * price, rules.fee_bps)
        self.position = Position(k, price, order.quantity, stop, target, risk, fee)

    def _inside(self, k: int, position: Position, o: float, h: float, low: float, c: float) -> None:
        d, rules, first = self.rules.sign, self.rules, position.bar == k
        exit_ = None
        if not first or rules.entry_bar_exits:
            exit_ = self._touched(position, o, h, low, c, first)
        if exit_ is None and rules.time_exit == "after_stops" and self._due(k, position):
            exit_ = "time_stop", o
        if exit_ is not None:
            if not first:
                position.saw(o, d)
            self._close(k, exit_[1], exit_[0])
            return
        position.saw(h, d)
        position.saw(low, d)
        if rules.time_exit == "close" and self._due(k, position):
            self._close(k, c, "time_stop")

    def _touched(
        self, position: Position, o: float, h: float, low: float, c: float, first: bool
    ) -> tuple[str, float] | None:
        d, rules, stop, target = self.rules.sign, self.rules, position.stop, position.target
        worst, best = (low, h) if d > 0 else (h, low)
        through = rules.limit_fill == "through"

        def reached(price: float) -> bool:
            move = (price - target) * d
            return move > 0 or (move == 0 and not through)

        gap_fills_at_open = rules.gap == "open" or first
        if (o - stop) * d <= 0:
            return "stop", o if gap_fills_at_open else stop
        if reached(o):
            return "target", o if gap_fills_at_open else target
        stopped, hit = (worst - stop) * d <= 0, reached(best)
        if stopped and hit:
            stopped = {
                "stop": True,
                "target": False,
                "ohlc": d < 0,
                "near": (o - low < h - o) == (d > 0),
                "color": (c >= o) == (d > 0),
            }[rules.both_hit]
        if stopped:
            return "stop", stop
        return ("target", target) if hit else None

    def _close(self, k: int, raw: float, reason: str) -> None:
        d, rules, position = self.rules.sign, self.rules, self.position
        assert position is not None
        resting = reason == "target" and rules.maker_fee_bps is not None
        price = raw if resting else self._slipped(raw, -d)
        rate = rules.maker_fee_bps if resting and rules.maker_fee_bps is not None else rules.fee_bps
        fees = position.costs + self._fee(position.quantity * price, rate)
        position.saw(price, d)
        pnl = position.quantity * (price - position.price) * d - fees
        self.trades.append(
            OracleTrade(
                self.rows[position.bar], self.rows[k], position.price, price, position.quantity, fees, pnl,
                pnl / (position.quantity * position.risk), position.worst / position.risk,
                position.best / position.risk, k - position.bar, reason,
            )
        )  # fmt: skip
        self.position = None

    def _tick(self, price: float) -> float:
        tick = self.rules.tick_size
        return math.floor(price / tick + 0.5) * tick if tick else price

    def _slipped(self, price: float, side: int) -> float:
        worse, tick = price * (1 + side * self.rules.slippage_bps * 1e-4), self.rules.tick_size
        if not tick:
            return worse
        return (math.ceil(worse / tick - 1e-9) if side > 0 else math.floor(worse / tick + 1e-9)) * tick

    def _fee(self, notional: float, bps: float) -> float:
        fee, unit = notional * (bps * 1e-4) + self.rules.fee_per_trade, self.rules.fee_rounding
        return math.floor(fee / unit + 0.5) * unit if unit else fee


def walk(bars: BarSeries, signal: np.ndarray, rules: Rules, s: int = 0) -> list[OracleTrade]:
    """Trades of symbol `s`; `signal` is bool over all rows."""
    rows = np.flatnonzero(bars.present[:, s]).tolist()
    columns = [part[rows, s].tolist() for part in (bars.open, bars.high, bars.low, bars.close)]
    return Walk(rules, rows, list(zip(*columns, strict=True))).trade(signal[rows].tolist())
