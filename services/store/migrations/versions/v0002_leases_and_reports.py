"""Leases, claims of slots, reports, their inbox and their verdicts."""

from alembic.operations import Operations
from sqlalchemy import BigInteger, Column, ForeignKey, ForeignKeyConstraint, Integer, Text, UniqueConstraint

revision = "0002"
down_revision = "0001"


def upgrade(operations: Operations) -> None:
    """Make the tables of the worker."""
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


def _slot_key() -> list[Column[object]]:
    return [
        Column("run_id", Text, ForeignKey("runs.run_id"), primary_key=True),
        Column("job", Text, primary_key=True),
        Column("slot", BigInteger, primary_key=True, autoincrement=False),
    ]


def _of_slot(parent: str) -> ForeignKeyConstraint:
    names = ("run_id", "job", "slot")
    return ForeignKeyConstraint(names, [f"{parent}.{name}" for name in names])
