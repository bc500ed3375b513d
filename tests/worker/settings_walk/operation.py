"""How each setting of bars, stores, feeds and operation is seen to act: one line for one setting."""

from tests.worker.settings_walk.operation_seen import (
    FILE,
    bars,
    books,
    command,
    crashed,
    doubtful,
    exchange,
    first_row,
    growing,
    jumping,
    linked,
    logged,
    notified,
    offered,
    pausing,
    served,
    steadily,
    tool_servers,
    vanishing,
)
from tests.worker.settings_walk.planner_seen import definitions_read, gathered
from tests.worker.settings_walk.walking import Entry

CHOSEN = {"runtime.data": FILE, "runtime.tz": "UTC"}
FEED, EXCHANGE, OPERATIONS = "runtime.feed.", "runtime.feed.exchange.", "runtime.operations."
BINANCE = {"data.symbols": ["BTC/USDT"], "data.timeframe": "1m"}
RUN = {"runtime.data": FILE, "runtime.tz": "UTC"}
LOGGED = {f"{OPERATIONS}log_file": "run.log"}
SERVED = {f"{OPERATIONS}port": 0}
STEADILY, JUMPING = growing(steadily, 20), growing(jumping)
VANISHING, PAUSING = growing(vanishing, 60), growing(pausing, 20)
STARTED, REACHED = {"command": ["serve"]}, {"url": "http://127.0.0.1:9/mcp"}
ONE_SERVER = {"planner.servers": {"desk": STARTED}}
WATCHED = {f"{FEED}continuous": True}

OPERATION: dict[str, Entry] = {
    "seed": Entry(7, first_row),
    "data.label": Entry("close", bars, CHOSEN),
    "data.symbols": Entry(["A"], bars, CHOSEN),
    "data.timeframe": Entry("4h", bars, CHOSEN),
    "data.resample": Entry("1w", bars, CHOSEN),
    "data.zone": Entry("America/New_York", bars, CHOSEN | {"data.resample": "1w"}),
    "runtime.data": Entry("other.csv", bars, CHOSEN),
    "data.adjusted": Entry(True, bars, CHOSEN),
    "data.on_doubt": Entry("refuse", doubtful),
    "runtime.date_format": Entry("%d.%m.%Y", bars, CHOSEN),
    "runtime.decimal": Entry(",", bars, CHOSEN),
    "runtime.columns": Entry("close=open", bars, CHOSEN),
    "runtime.tz": Entry("America/New_York", bars, CHOSEN),
    "runtime.max_bytes": Entry(1_000, bars, CHOSEN),
    "runtime.start": Entry("2024-01-10", bars, CHOSEN),
    "runtime.end": Entry("2024-01-20", bars, CHOSEN),
    "runtime.db": Entry("sqlite:///other.db", command, RUN),
    "runtime.out": Entry("out", command, RUN),
    "runtime.flush_rows": Entry(3, command, RUN),
    "runtime.playbooks": Entry("nowhere", books),
    f"{FEED}grace_s": Entry(90.0, STEADILY),
    f"{FEED}quarantine_bars": Entry(2, STEADILY),
    f"{FEED}stale_after_bars": Entry(1, STEADILY),
    f"{FEED}max_row_age_bars": Entry(0.01, STEADILY),
    f"{FEED}history_bars": Entry(4, STEADILY),
    f"{FEED}continuous": Entry(True, PAUSING),
    f"{FEED}poll_s": Entry(7.0, STEADILY),
    f"{FEED}gone_s": Entry(600.0, VANISHING),
    f"{FEED}clock_jump_s": Entry(60.0, JUMPING),
    f"{EXCHANGE}rest_url": Entry("http://127.0.0.1:9", exchange, BINANCE),
    f"{EXCHANGE}markets": Entry(["spot"], exchange, BINANCE),
    f"{EXCHANGE}request_timeout_s": Entry(3.0, exchange, BINANCE),
    f"{EXCHANGE}request_interval_ms": Entry(777.0, exchange, BINANCE),
    f"{EXCHANGE}settle_s": Entry(45.0, exchange, BINANCE),
    f"{EXCHANGE}backoff_max_s": Entry(3.0, exchange, BINANCE),
    f"{OPERATIONS}log_format": Entry("json", logged, LOGGED),
    f"{OPERATIONS}log_level": Entry("error", logged, LOGGED),
    f"{OPERATIONS}log_file": Entry("other.log", logged, LOGGED),
    f"{OPERATIONS}host": Entry("0.0.0.0", served, SERVED),
    f"{OPERATIONS}port": Entry(0, served),
    f"{OPERATIONS}hosts": Entry(["box.example"], served, SERVED),
    f"{OPERATIONS}ready_lag_bars": Entry(100, served, SERVED),
    f"{OPERATIONS}notify": Entry(["error"], notified),
    f"{OPERATIONS}notify_window_s": Entry(30.0, notified),
    f"{OPERATIONS}start_limit": Entry(2, crashed),
    f"{OPERATIONS}start_window_s": Entry(60, crashed),
    "runtime.console.url": Entry("https://console.example", linked),
    "runtime.console.folder": Entry("bars", offered),
    "planner.confidence_threshold": Entry(0.9, gathered),
    "planner.enable_reflection": Entry(False, gathered),
    "planner.max_iterations": Entry(1, gathered),
    "planner.schema_ttl_s": Entry(30, definitions_read, ONE_SERVER),
    "planner.history": Entry(1, gathered),
    "planner.native_tools": Entry(False, gathered),
    "planner.servers": Entry({"desk": STARTED}, tool_servers),
    "planner.servers[].command": Entry({"desk": {"command": ["serve", "now"]}}, tool_servers, ONE_SERVER),
    "planner.servers[].url": Entry({"desk": REACHED}, tool_servers, ONE_SERVER),
    "planner.servers[].token_env": Entry(
        {"desk": {**STARTED, "token_env": "DESK"}}, tool_servers, ONE_SERVER
    ),
}
