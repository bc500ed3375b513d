"""An independent reading of the execution rules in plain Python, written from the text of the contract.

Slow and obvious on purpose: one symbol, one position, no events. The kernel has to agree with it trade by
trade.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from trading_core.bars import BarSeries


@dataclass(frozen=True)
class OracleTrade:
    """One closed trade: rows, prices before slippage are not kept."""

    entry: int
    exit: int
    entry_price: float
    exit_price: float
    reason: str
    pnl: float
    mae_r: float
    mfe_r: float


@dataclass(frozen=True)
class Rules:
    """The switches of `simulate`."""

    direction: str = "long"
    stop_pct: float = 0.02
    target_pct: float = 0.04
    time_stop: int = 50
    fee_bps: float = 5.0
    slippage_bps: float = 0.0
    fill: str = "next_open"
    level_base: str = "fill"
    entry_bar_exits: bool = True
    both_hit: str = "stop"
    gap: str = "open"


def walk(bars: BarSeries, signal: np.ndarray, rules: Rules) -> list[OracleTrade]:
    """Trades of symbol 0; `signal` is bool over its rows, all present."""
    d = 1.0 if rules.direction == "long" else -1.0
    fee, slip = rules.fee_bps / 1e4, rules.slippage_bps / 1e4
    o, h, low, c = (part[:, 0].tolist() for part in (bars.open, bars.high, bars.low, bars.close))
    trades: list[OracleTrade] = []
    position: dict[str, Any] | None = None
    order_at: int | None = None

    def opened(t: int, raw: float, signal_close: float) -> dict[str, Any]:
        price = raw * (1 + d * slip)
        base = price if rules.level_base == "fill" else signal_close
        stop, target = base * (1 - d * rules.stop_pct), base * (1 + d * rules.target_pct)
        return dict(t=t, price=price, stop=stop, target=target, risk=abs(base - stop), worst=0.0, best=0.0)

    def closed(t: int, raw: float, reason: str) -> OracleTrade:
        assert position is not None
        price = raw * (1 - d * slip)
        moves = [position["worst"], position["best"], (price - position["price"]) * d]
        pnl = (price - position["price"]) * d - fee * (price + position["price"])
        return OracleTrade(
            position["t"],
            t,
            position["price"],
            price,
            reason,
            pnl,
            min(0.0, *moves) / position["risk"],
            max(0.0, *moves) / position["risk"],
        )

    def seen(values: list[float]) -> None:
        assert position is not None
        for value in values:
            move = (value - position["price"]) * d
            position["worst"], position["best"] = min(position["worst"], move), max(position["best"], move)

    for t in range(len(o)):
        if position is not None and t - position["t"] >= rules.time_stop:
            trades.append(closed(t, o[t], "time_stop"))
            position = None
        if order_at is not None:
            position = opened(t, o[t], c[order_at])
            order_at = None
        if position is not None and (
            position["t"] < t or (rules.entry_bar_exits and rules.fill == "next_open")
        ):
            exit_ = _exit(position, o[t], h[t], low[t], c[t], d, rules, position["t"] == t)
            if exit_ is not None:
                if position["t"] < t:
                    seen([o[t]])
                trades.append(closed(t, exit_[1], exit_[0]))
                position = None
            else:
                seen([h[t], low[t]])
        elif position is not None:
            seen([h[t], low[t]])
        if position is None and order_at is None and signal[t]:
            if rules.fill == "close":
                position = opened(t, c[t], c[t])
            else:
                order_at = t
    return trades


def _exit(
    position: dict[str, Any],
    o: float,
    h: float,
    low: float,
    c: float,
    d: float,
    rules: Rules,
    entry_bar: bool,
) -> tuple[str, float] | None:
    stop, target = position["stop"], position["target"]
    at_open = rules.gap == "open" or entry_bar
    if (o <= stop) if d > 0 else (o >= stop):
        return "stop", o if at_open else stop
    if (o >= target) if d > 0 else (o <= target):
        return "target", o if at_open else target
    stop_hit = low <= stop if d > 0 else h >= stop
    target_hit = h >= target if d > 0 else low <= target
    if stop_hit and target_hit:
        near_low = o - low < h - o
        low_first = {"ohlc": False, "near": near_low, "color": c >= o}.get(rules.both_hit)
        sooner = rules.both_hit if low_first is None else ("stop" if low_first == (d > 0) else "target")
        stop_hit, target_hit = sooner == "stop", sooner == "target"
    if stop_hit:
        return "stop", stop
    return ("target", target) if target_hit else None
