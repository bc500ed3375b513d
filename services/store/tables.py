"""The tables, portable between SQLite and PostgreSQL: integer times, text payloads, hardly a dialect.

`journal` keeps its rowid on SQLite; no other table's name contains `journal`. `runs` holds what is not
hashed: the run's name, its data, its environment and its last document. The others are the worker's: who may
act (`leases`), what became of each slot (`slot_claims`), what was reported, what waits for the judge, and
what the judge said; then the operator's: what a trading process is asked, and reports on demand. Their wall
times are ms of the database's clock, slots are ns. `savepoints` may be lost: they save time, no more.
Rows of runs, bars and orders hold their own hashes, bars in a chain whose length `runs` counts; `seals` are
the hashes of what several processes write about a run, so that a row that is gone is missed. `trials` is the
ledger of what was tried: its rows and their seals outlive runs. `change_plans` says how each plan of a run
stands; its revisions come last, so that a list need not read them. `tool_pins` are definitions of tools of
other servers, as they were accepted. `conversation_turns` are questions with their answers, and what tools
brought for them. `console_users` may log in to the console; `console_audit` says who decided what there.
"""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    func,
)

from services.store.packed_text import PackedText

metadata = MetaData()
CORE = frozenset({"runs", "journal"})
ORDER_KINDS = ("order_accepted", "add_filled", "exit_filled", "scale_out_filled")


def _texts(*names: str, nullable: bool = False) -> list[Column[str]]:
    return [Column(name, Text, nullable=nullable) for name in names]


def _numbers(*names: str) -> list[Column[int]]:
    return [Column(name, BigInteger, nullable=False) for name in names]


def _run() -> Column[str]:
    return Column("run_id", Text, ForeignKey("runs.run_id"), primary_key=True)


runs = Table(
    "runs",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("run_id", Text, nullable=False, unique=True),
    Column("name", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    *_texts("mode", "status", "config_hash", "config", "data", "environment"),
    Column("events", BigInteger, nullable=False),
    Column("head_hash", Text, nullable=False),
    Column("document", Text, nullable=True),
    Column("bars", BigInteger, nullable=False),
    Column("description_hash", Text, nullable=False),
    Column("end_hash", Text, nullable=True),
)

journal = Table(
    "journal",
    metadata,
    _run(),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    *_numbers("ts_event", "known_at"),
    Column("kind", Text, nullable=False),
    Column("symbol", Text, nullable=True),
    Column("payload", PackedText, nullable=False),
    Column("telemetry", Text, nullable=True),
    Column("hash", Text, nullable=False),
    Index("journal_kinds", "run_id", "kind", "seq"),
)

leases = Table(
    "leases",
    metadata,
    Column("name", Text, primary_key=True),
    Column("owner", Text, nullable=False),
    *_numbers("epoch", "until_ms"),
)


def _slot_key() -> list[Column[Any]]:
    """The natural key of everything that belongs to one slot of one job of one run."""
    return [
        _run(),
        Column("job", Text, primary_key=True),
        Column("slot", BigInteger, primary_key=True, autoincrement=False),
    ]


def _of_slot(parent: str) -> ForeignKeyConstraint:
    names = ("run_id", "job", "slot")
    return ForeignKeyConstraint(names, [f"{parent}.{name}" for name in names])


slot_claims = Table(
    "slot_claims",
    metadata,
    *_slot_key(),
    *_texts("state", "owner"),
    Column("epoch", BigInteger, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("changed_ms", BigInteger, nullable=False),
    Column("reason", Text, nullable=True),
    Column("facts", Text, nullable=False),
    *_texts("request_hash", "request", nullable=True),
)

slow_reports = Table(
    "slow_reports",
    metadata,
    *_slot_key(),
    *_texts("report_id", "request_hash", "report", "telemetry", "owner"),
    *_numbers("epoch", "written_ms"),
    UniqueConstraint("run_id", "request_hash"),
    _of_slot("slot_claims"),
)

report_inbox = Table(
    "report_inbox",
    metadata,
    *_slot_key(),
    Column("state", Text, nullable=False),
    Column("consumer", Text, nullable=True),
    *_numbers("epoch", "until_ms"),
    Column("arrived_at", BigInteger, nullable=True),
    _of_slot("slow_reports"),
)

report_verdicts = Table(
    "report_verdicts",
    metadata,
    *_slot_key(),
    *_texts("report_id", "verdict_id", "verdict", "consumer"),
    *_numbers("epoch", "decided_ms"),
    _of_slot("slow_reports"),
)

operator_requests = Table(
    "operator_requests",
    metadata,
    _run(),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    *_texts("kind", "payload", "state"),
    Column("asked_ms", BigInteger, nullable=False),
    Column("answered_ms", BigInteger, nullable=True),
    Column("result", Text, nullable=True),
)

reports_on_demand = Table(
    "reports_on_demand",
    metadata,
    _run(),
    Column("report_id", Text, primary_key=True),
    Column("known_at", BigInteger, nullable=False),
    *_texts("request_hash", "request", "report", "telemetry"),
    Column("written_ms", BigInteger, nullable=False),
    *_texts("verdict_id", "verdict", "calls", nullable=True),
    Column("decided_ms", BigInteger, nullable=True),
)

paper_bars = Table(
    "paper_bars",
    metadata,
    _run(),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("label", BigInteger, nullable=False),
    *_texts("bars", "hash"),
    UniqueConstraint("run_id", "label"),
)

paper_orders = Table(
    "paper_orders",
    metadata,
    _run(),
    Column("order_id", Text, primary_key=True),
    Column("seq", BigInteger, nullable=False),
    *_texts("state", "hash"),
)

venue_orders = Table(
    "venue_orders",
    metadata,
    Column("account", Text, primary_key=True),
    Column("order_id", Text, primary_key=True),
    Column("instruction", Text, nullable=False),
    Column("sends", Integer, nullable=False),
    Column("hash", Text, nullable=False),
)

trading_processes = Table(
    "trading_processes",
    metadata,
    _run(),
    Column("owner", Text, nullable=False),
    Column("seen_ms", BigInteger, nullable=False),
    Column("signs", Text, nullable=False),
)

savepoints = Table(
    "savepoints",
    metadata,
    _run(),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    *_numbers("bars", "events"),
    Column("code", Text, nullable=False),
    Column("added", LargeBinary, nullable=False),
    Column("state", LargeBinary, nullable=True),
)

seals = Table(
    "seals",
    metadata,
    Column("run_id", Text, primary_key=True),
    Column("part", Text, primary_key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("hash", Text, nullable=False),
)

trials = Table(
    "trials",
    metadata,
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    *_texts("run_id", "config_hash", "playbooks", "data", "timeframe", "symbols"),
    Column("first_label", BigInteger, nullable=False),
    Column("last_label", BigInteger, nullable=True),
    *_numbers("hypotheses", "candidates", "promotions"),
    Column("ledger", Text, nullable=False),
)

change_plans = Table(
    "change_plans",
    metadata,
    _run(),
    Column("plan_id", Text, primary_key=True),
    Column("state", Text, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("hash", Text, nullable=False),
    Column("phase", Integer, nullable=False),
    Column("trigger", Text, nullable=False),
    *_numbers("made_at", "expires_at"),
    Column("journalled", Integer, nullable=False),
    *_texts("steps", "decisions", "reasons"),
    *_texts("two_phase", "reasoning", nullable=True),
    Column("elapsed_ms", BigInteger, nullable=True),
    Column("revisions", Text, nullable=False),
)

tool_pins = Table(
    "tool_pins",
    metadata,
    Column("client", Text, primary_key=True),
    Column("tool", Text, primary_key=True),
    *_texts("hash", "definition"),
    Column("pinned_ms", BigInteger, nullable=False),
)

conversation_turns = Table(
    "conversation_turns",
    metadata,
    Column("name", Text, primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    *_texts("question", "document"),
    Column("asked_ms", BigInteger, nullable=False),
)

console_users = Table(
    "console_users",
    metadata,
    Column("name", Text, primary_key=True),
    *_texts("role", "password_hash"),
    Column("added_ms", BigInteger, nullable=False),
)

console_audit = Table(
    "console_audit",
    metadata,
    Column("number", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("at_ms", BigInteger, nullable=False),
    *_texts("who", "action", "subject", "outcome"),
)
PRUNED_TEXT = func.length(journal.c.payload) == 0  # a row that was pruned
