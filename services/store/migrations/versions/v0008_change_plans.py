"""Change plans: what waits for a decision, with every revision, and what became of it."""

from alembic.operations import Operations
from sqlalchemy import BigInteger, Column, ForeignKey, Integer, Text

revision = "0008"
down_revision = "0007"


def upgrade(operations: Operations) -> None:
    """Make the table of change plans."""
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
