"""Operator requests to trading processes, and reports on demand with the judge's verdict on them."""

from alembic.operations import Operations
from sqlalchemy import BigInteger, Column, ForeignKey, Text

revision = "0003"
down_revision = "0002"


def upgrade(operations: Operations) -> None:
    """Make the tables of requests and of reports on demand."""
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
