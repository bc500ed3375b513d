"""Every table of 0.1.0."""

from alembic.operations import Operations
from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    ForeignKeyConstraint,
    Integer,
    LargeBinary,
    Text,
    UniqueConstraint,
)

revision = "0001"
down_revision = None


def upgrade(operations: Operations) -> None:
    """Make the tables of runs, of the worker, of the operator and of the trading process."""
    _make_runs(operations)
    _make_requests(operations)
    _make_slots(operations)
    _make_verdicts(operations)
    _make_trading(operations)
    _make_seals(operations)
    _make_plans(operations)


def _make_runs(operations: Operations) -> None:
    operations.create_table(
        "runs",
        Column("number", Integer, primary_key=True, autoincrement=False),
        Column("run_id", Text, nullable=False, unique=True),
        Column("name", Text, nullable=False),
        Column("created_at", BigInteger, nullable=False),
        Column("mode", Text, nullable=False),
        Column("status", Text, nullable=False),
        Column("config_hash", Text, nullable=False),
        Column("config", Text, nullable=False),
        Column("data", Text, nullable=False),
        Column("environment", Text, nullable=False),
        Column("events", BigInteger, nullable=False),
        Column("head_hash", Text, nullable=False),
        Column("document", Text, nullable=True),
    )
    operations.create_table(
        "journal",
        Column("run_id", Text, ForeignKey("runs.run_id"), primary_key=True),
        Column("seq", BigInteger, primary_key=True, autoincrement=False),
        Column("ts_event", BigInteger, nullable=False),
        Column("known_at", BigInteger, nullable=False),
        Column("kind", Text, nullable=False),
        Column("symbol", Text, nullable=True),
        Column("payload", Text, nullable=False),
        Column("telemetry", Text, nullable=True),
        Column("prev_hash", Text, nullable=False),
        Column("hash", Text, nullable=False),
    )
    operations.create_index("journal_kinds", "journal", ["run_id", "kind", "seq"])


def _make_requests(operations: Operations) -> None:
    operations.create_table(
        "operator_requests",
        Column("run_id", Text, ForeignKey("runs.run_id"), primary_key=True),
        Column("number", BigInteger, primary_key=True, autoincrement=False),
        Column("kind", Text, nullable=False),
        Column("payload", Text, nullable=False),
        Column("state", Text, nullable=False),
        Column("asked_ms", BigInteger, nullable=False),
        Column("answered_ms", BigInteger, nullable=True),
        Column("result", Text, nullable=True),
    )
    operations.create_table(
        "reports_on_demand",
        Column("run_id", Text, ForeignKey("runs.run_id"), primary_key=True),
        Column("report_id", Text, primary_key=True),
        Column("known_at", BigInteger, nullable=False),
        Column("request_hash", Text, nullable=False),
        Column("request", Text, nullable=False),
        Column("report", Text, nullable=False),
        Column("telemetry", Text, nullable=False),
        Column("written_ms", BigInteger, nullable=False),
        Column("verdict_id", Text, nullable=True),
        Column("verdict", Text, nullable=True),
        Column("calls", Text, nullable=True),
        Column("decided_ms", BigInteger, nullable=True),
    )


def _make_slots(operations: Operations) -> None:
    operations.create_table(
        "leases",
        Column("name", Text, primary_key=True),
        Column("owner", Text, nullable=False),
        Column("epoch", BigInteger, nullable=False),
        Column("until_ms", BigInteger, nullable=False),
    )
    operations.create_table(
        "slot_claims",
        *_slot_key(),
        Column("state", Text, nullable=False),
        Column("owner", Text, nullable=False),
        Column("epoch", BigInteger, nullable=False),
        Column("attempts", Integer, nullable=False),
        Column("changed_ms", BigInteger, nullable=False),
        Column("reason", Text, nullable=True),
        Column("facts", Text, nullable=False),
        Column("request_hash", Text, nullable=True),
        Column("request", Text, nullable=True),
    )
    operations.create_table(
        "slow_reports",
        *_slot_key(),
        Column("report_id", Text, nullable=False),
        Column("request_hash", Text, nullable=False),
        Column("report", Text, nullable=False),
        Column("telemetry", Text, nullable=False),
        Column("owner", Text, nullable=False),
        Column("epoch", BigInteger, nullable=False),
        Column("written_ms", BigInteger, nullable=False),
        UniqueConstraint("run_id", "request_hash"),
        _of_slot("slot_claims"),
    )


def _make_verdicts(operations: Operations) -> None:
    operations.create_table(
        "report_inbox",
        *_slot_key(),
        Column("state", Text, nullable=False),
        Column("consumer", Text, nullable=True),
        Column("epoch", BigInteger, nullable=False),
        Column("until_ms", BigInteger, nullable=False),
        Column("arrived_at", BigInteger, nullable=True),
        _of_slot("slow_reports"),
    )
    operations.create_table(
        "report_verdicts",
        *_slot_key(),
        Column("report_id", Text, nullable=False),
        Column("verdict_id", Text, nullable=False),
        Column("verdict", Text, nullable=False),
        Column("consumer", Text, nullable=False),
        Column("epoch", BigInteger, nullable=False),
        Column("decided_ms", BigInteger, nullable=False),
        _of_slot("slow_reports"),
    )


def _make_trading(operations: Operations) -> None:
    operations.create_table(
        "paper_bars",
        Column("run_id", Text, ForeignKey("runs.run_id"), primary_key=True),
        Column("number", BigInteger, primary_key=True, autoincrement=False),
        Column("label", BigInteger, nullable=False),
        Column("bars", Text, nullable=False),
        UniqueConstraint("run_id", "label"),
    )
    operations.create_table(
        "paper_orders",
        Column("run_id", Text, ForeignKey("runs.run_id"), primary_key=True),
        Column("order_id", Text, primary_key=True),
        Column("seq", BigInteger, nullable=False),
        Column("state", Text, nullable=False),
    )
    operations.create_table(
        "venue_orders",
        Column("account", Text, primary_key=True),
        Column("order_id", Text, primary_key=True),
        Column("instruction", Text, nullable=False),
        Column("sends", Integer, nullable=False),
    )
    operations.create_table(
        "trading_processes",
        Column("run_id", Text, ForeignKey("runs.run_id"), primary_key=True),
        Column("owner", Text, nullable=False),
        Column("seen_ms", BigInteger, nullable=False),
        Column("signs", Text, nullable=False),
    )
    operations.create_table(
        "savepoints",
        Column("run_id", Text, ForeignKey("runs.run_id"), primary_key=True),
        Column("number", BigInteger, primary_key=True, autoincrement=False),
        Column("bars", BigInteger, nullable=False),
        Column("events", BigInteger, nullable=False),
        Column("code", Text, nullable=False),
        Column("added", LargeBinary, nullable=False),
        Column("state", LargeBinary, nullable=True),
    )


def _make_seals(operations: Operations) -> None:
    operations.create_table(
        "seals",
        Column("run_id", Text, ForeignKey("runs.run_id"), primary_key=True),
        Column("part", Text, primary_key=True),
        Column("number", BigInteger, primary_key=True, autoincrement=False),
        Column("hash", Text, nullable=False),
    )
    operations.create_table(
        "trials",
        Column("number", BigInteger, primary_key=True, autoincrement=False),
        Column("run_id", Text, nullable=False),
        Column("config_hash", Text, nullable=False),
        Column("playbooks", Text, nullable=False),
        Column("data", Text, nullable=False),
        Column("timeframe", Text, nullable=False),
        Column("symbols", Text, nullable=False),
        Column("first_label", BigInteger, nullable=False),
        Column("last_label", BigInteger, nullable=True),
        Column("hypotheses", BigInteger, nullable=False),
        Column("candidates", BigInteger, nullable=False),
        Column("promotions", BigInteger, nullable=False),
        Column("ledger", Text, nullable=False),
    )


def _make_plans(operations: Operations) -> None:
    operations.create_table(
        "change_plans",
        Column("run_id", Text, ForeignKey("runs.run_id"), primary_key=True),
        Column("plan_id", Text, primary_key=True),
        Column("state", Text, nullable=False),
        Column("revision", Integer, nullable=False),
        Column("hash", Text, nullable=False),
        Column("phase", Integer, nullable=False),
        Column("trigger", Text, nullable=False),
        Column("made_at", BigInteger, nullable=False),
        Column("expires_at", BigInteger, nullable=False),
        Column("journalled", Integer, nullable=False),
        Column("steps", Text, nullable=False),
        Column("decisions", Text, nullable=False),
        Column("reasons", Text, nullable=False),
        Column("two_phase", Text, nullable=True),
        Column("reasoning", Text, nullable=True),
        Column("elapsed_ms", BigInteger, nullable=True),
        Column("revisions", Text, nullable=False),
    )
    operations.create_table(
        "tool_pins",
        Column("client", Text, primary_key=True),
        Column("tool", Text, primary_key=True),
        Column("hash", Text, nullable=False),
        Column("definition", Text, nullable=False),
        Column("pinned_ms", BigInteger, nullable=False),
    )
    operations.create_table(
        "conversation_turns",
        Column("name", Text, primary_key=True),
        Column("number", Integer, primary_key=True, autoincrement=False),
        Column("question", Text, nullable=False),
        Column("document", Text, nullable=False),
        Column("asked_ms", BigInteger, nullable=False),
    )


def _slot_key() -> list[Column[object]]:
    return [
        Column("run_id", Text, ForeignKey("runs.run_id"), primary_key=True),
        Column("job", Text, primary_key=True),
        Column("slot", BigInteger, primary_key=True, autoincrement=False),
    ]


def _of_slot(parent: str) -> ForeignKeyConstraint:
    names = ("run_id", "job", "slot")
    return ForeignKeyConstraint(names, [f"{parent}.{name}" for name in names])
