"""The limits that every guard of the crash test is given, each in its own words, as far as it has them."""

from typing import Any, Final

SYMBOLS: Final = ("AAPL", "GOOG", "IBM", "MSFT")
LIMITS: Final[dict[str, Any]] = {
    "symbols": list(SYMBOLS),
    "order_share": 0.10,  # of equity, one order
    "symbol_share": 0.25,  # of equity, one symbol
    "daily_loss": 0.03,
    "drawdown": 0.15,
    "entries_a_day": 9,
    "collar": 0.10,
    "through": 0.03,
    "duplicate_s": 60,
    "stale_s": 4 * 86_400,  # of daily bars over a long weekend
    "expires_s": 300,
    "stop_share": 0.25,
}
OURS: Final[dict[str, Any]] = {
    "envelope": {
        "allowed_symbols": SYMBOLS, "max_symbol_exposure": LIMITS["symbol_share"],
        "max_daily_loss": LIMITS["daily_loss"], "max_drawdown": LIMITS["drawdown"],
    },
    "execution": {"spread_bps": 2.0},
    "limits": {
        "max_share_of_equity": LIMITS["order_share"], "entries_a_day": LIMITS["entries_a_day"],
        "price_collar": LIMITS["collar"], "price_through": LIMITS["through"],
        "duplicate_window_s": LIMITS["duplicate_s"], "expires_s": LIMITS["expires_s"],
    },
}  # fmt: skip
