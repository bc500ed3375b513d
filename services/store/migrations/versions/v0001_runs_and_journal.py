"""Runs and their journal."""

from alembic.operations import Operations
from sqlalchemy import BigInteger, Column, ForeignKey, Integer, Text

revision = "0001"
down_revision = None


def upgrade(operations: Operations) -> None:
    """Make `runs` and `journal`."""
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
