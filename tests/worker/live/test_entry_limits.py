"""Limits that can keep orders from being accepted: what is used of each, and when they block."""

import json

import pytest

from schemas.canonical import canonical_json
from schemas.settings import Settings
from schemas.settings.envelope import CorrelationBucket, NoTradeWindow
from tests.worker.shared_runs import embedded_bars, run_on
from worker.live.entry_limits import entry_limits

ACCOUNT = ("kill_switch", "daily_loss", "drawdown", "consecutive_losses", "gross_exposure", "net_exposure")
BUCKET = CorrelationBucket(name="old", symbols=("IBM", "MSFT"), max_exposure=0.5)
WINDOW = NoTradeWindow(reason="holiday", from_minute=0, to_minute=1_439)


def limits_after(**envelope):
    """Limits by name and symbol after some months, and the session."""
    settings = Settings.model_validate({"envelope": envelope})
    session = run_on(embedded_bars("2003-01-01", "2004-07-15"), settings).result.session
    found = entry_limits(session.engine, settings.envelope)
    return {(limit["limit"], limit["symbol"]): limit for limit in found}, session


def test_limits_of_the_account_say_how_much_is_used():
    limits, session = limits_after(
        correlation_buckets=(BUCKET,),
        max_entries_per_hour=4,
        max_entries_per_block=50,
        max_symbol_exposure=0.4,
    )
    port, state = session.engine.portfolio[0], session.engine.state
    assert [name for name, symbol in limits if symbol is None] == [
        *(*ACCOUNT, "bucket_exposure old", "entries_per_hour", "entries_per_block")
    ]
    assert limits["drawdown", None]["used"] == pytest.approx(1.0 - port["equity"] / port["peak"])
    assert limits["drawdown", None]["bound"] == session.settings.envelope.max_drawdown
    assert limits["gross_exposure", None]["used"] == pytest.approx(port["gross"] / port["equity"])
    assert limits["entries_per_block", None]["used"] == port["block_entries"]
    held = {s: float(row["quantity"] * row["last_close"]) for s, row in enumerate(state) if row["direction"]}
    assert held
    shares = {symbol: limit["used"] for (name, symbol), limit in limits.items() if name == "symbol_exposure"}
    names = session.bars.symbols
    assert shares == pytest.approx({names[s]: worth / port["equity"] for s, worth in held.items()})
    inside = sum(worth for s, worth in held.items() if names[s] in BUCKET.symbols)
    assert limits["bucket_exposure old", None]["used"] == pytest.approx(inside / port["equity"])
    assert not any(limit["blocks"] for limit in limits.values() if limit["used"] < limit["bound"])


@pytest.mark.parametrize(
    ("name", "envelope"),
    [
        ("drawdown", {"max_drawdown": 0.001, "drawdown_release_bars": 5_000}),
        ("consecutive_losses", {"max_consecutive_losses": 1, "loss_pause_bars": 5_000}),
        ("symbol_losses", {"max_symbol_losses": 1, "loss_pause_bars": 5_000}),
        ("no_trade_window", {"no_trade_windows": (WINDOW,)}),
        ("kill_switch", {"kill_switch": True}),
    ],
)
def test_limit_that_keeps_entries_out_is_the_one_that_blocks(name, envelope):
    limits, _ = limits_after(**envelope)
    assert json.loads(canonical_json([*limits.values()])) == [*limits.values()]  # as a process says it
    assert {found for (found, _), limit in limits.items() if limit["blocks"]} == {name}
