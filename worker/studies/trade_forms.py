"""What programs call the columns of their tables of trades, and their words for a side."""

# The column of each role, in lower case; a name that comes again has `.1`, as pandas reads it. `gross` is
# money before `fees`, which lower it whatever their sign, and `swap`, which has its own. Sources: the tables
# that freqtrade 2026.9 exports, backtesting.py 0.6.6 has as `_trades`, vectorbt 1.2 as
# `trades.records_readable` and nautilus_trader 1.221 as its positions report, a return of prices alone;
# the CSV of closed trades of QuantConnect (its API page "Export Trades"); positions of the history report of
# MetaTrader 5; what `TradingMemoryLog.load_entries` of TradingAgents gives back.
FORMS: dict[str, dict[str, str]] = {
    "freqtrade": {
        "entry_time": "open_date", "exit_time": "close_date", "return": "profit_ratio",
        "leverage": "leverage",
        "entry_price": "open_rate", "stop": "initial_stop_loss_abs", "symbol": "pair",
        "direction": "is_short", "playbook": "enter_tag", "open": "is_open", "quantity": "amount",
    },
    "backtesting.py": {
        "entry_time": "entrytime", "exit_time": "exittime", "return": "returnpct",
        "entry_price": "entryprice", "stop": "sl", "direction": "size", "playbook": "tag",
    },
    "vectorbt": {
        "entry_time": "entry timestamp", "exit_time": "exit timestamp", "return": "return",
        "entry_price": "avg entry price", "symbol": "column", "direction": "direction", "open": "status",
        "quantity": "size",
    },
    "nautilus": {
        "entry_time": "ts_opened", "exit_time": "ts_closed", "return": "realized_return",
        "entry_price": "avg_px_open", "symbol": "instrument_id", "direction": "entry",
        "playbook": "strategy_id", "quantity": "peak_qty", "open": "ts_closed",
    },
    "quantconnect": {
        "entry_time": "entry time", "exit_time": "exit time", "entry_price": "entry price",
        "exit_price": "exit price", "gross": "p&l", "fees": "fees", "symbol": "symbols",
        "direction": "direction", "quantity": "quantity",
    },
    "mt5": {
        "entry_time": "time", "exit_time": "time.1", "entry_price": "price", "exit_price": "price.1",
        "gross": "profit", "fees": "commission", "swap": "swap", "stop": "s / l", "symbol": "symbol",
        "direction": "type", "quantity": "volume",
    },
    "tradingagents": {
        "entry_time": "date", "holding": "holding", "return": "raw", "symbol": "ticker",
        "direction": "rating", "open": "pending",
    },
}  # fmt: skip
NEEDED = ("entry_time", "exit_time", "holding", "return", "gross")
SIDES = {
    **dict.fromkeys(("long", "buy", "overweight", "false"), 1),
    **dict.fromkeys(("short", "sell", "underweight", "true"), -1),  # true and false are of `is_short`
    "hold": 0,
}
OPEN = "open"  # what an empty word of that role means
UNRESOLVED = (OPEN, "true", "1", "nat")
