"""How far each limit is that can keep an order from being accepted, after the last bar of an engine."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from schemas.settings.envelope import EnvelopeSettings
from trading_core.kernel.limits import HOUR_NS
from trading_core.kernel.records import FLAG_NO_TRADE
from trading_core.trigger_engine import TriggerEngine


def entry_limits(engine: TriggerEngine, envelope: EnvelopeSettings) -> tuple[dict[str, Any], ...]:
    """Limits by name: what is used, the bound, whether entries are blocked; fractions of equity, or counts.

    Those of one symbol name it, and are left out while nothing of them is used; of an account that is gone,
    and before the first bar, there are none.
    """
    if engine.t == 0 or engine.account_gone:
        return ()
    found = [*_of_account(engine, envelope), *_of_symbols(engine)]
    names = ("limit", "symbol", "used", "bound", "blocks")
    return tuple(dict(zip(names, limit, strict=True)) for limit in found)


Limit = tuple[str, str | None, float, float, bool]


def _of_account(engine: TriggerEngine, envelope: EnvelopeSettings) -> Iterator[Limit]:
    port, p, t = engine.portfolio[0], engine.parameters[0], engine.t - 1
    equity, day_start, peak = (float(port[name]) for name in ("equity", "day_start", "peak"))
    yield "kill_switch", None, int(port["kill"]), 1, bool(port["kill"] == 1)
    lost = max(0.0, 1.0 - equity / day_start)
    yield "daily_loss", None, lost, float(p["max_daily_loss"]), bool(port["halt_day"] >= port["day"])
    fallen, waits = max(0.0, 1.0 - equity / peak), bool(t < port["recovery_from"])
    yield "drawdown", None, fallen, float(p["max_drawdown"]), waits
    paused = bool(port["halt_until"] >= t and not waits and port["exposure_halt"] == 0)
    yield "consecutive_losses", None, int(port["losses"]), int(p["max_losses"]), paused
    held = engine.state["direction"] * engine.state["quantity"] * engine.state["last_close"]
    for name, used in (("gross", float(port["gross"])), ("net", abs(float(port["net"])))):
        yield _share(f"{name}_exposure", None, used / equity, float(p[f"max_{name}"]))
    for k, bucket in enumerate(envelope.correlation_buckets):
        inside = np.abs(held[engine.state["buckets"] >> k & 1 == 1]).sum()
        yield _share(f"bucket_exposure {bucket.name}", None, float(inside) / equity, bucket.max_exposure)
    if most := int(p["max_entries"]):
        recent = port["recent"][: int(port["entries"])]
        used = int((int(engine.bars.close_times[t]) - recent < HOUR_NS).sum())
        yield _share("entries_per_hour", None, used, most)
    if most := int(p["max_block_entries"]):
        yield _share("entries_per_block", None, int(port["block_entries"]), most)


def _of_symbols(engine: TriggerEngine) -> Iterator[Limit]:
    p, equity = engine.parameters[0], float(engine.portfolio[0]["equity"])
    closed = engine.flags[engine.t - 1] & FLAG_NO_TRADE
    for symbol, own, shut in zip(engine.bars.symbols, engine.state, closed, strict=True):
        if own["direction"] != 0:
            used = float(own["quantity"] * own["last_close"]) / equity
            yield _share("symbol_exposure", symbol, used, float(p["max_symbol"]))
        if (paused := bool(own["own"] < own["pause_own"])) or own["losses"]:
            yield "symbol_losses", symbol, int(own["losses"]), int(p["max_symbol_losses"]), paused
        if shut:
            yield "no_trade_window", symbol, 1, 1, True


def _share(name: str, symbol: str | None, used: float, bound: float) -> Limit:
    return name, symbol, used, bound, used >= bound
