"""Savepoints of paper runs: what a process needs to go on without playing the whole run."""

from alembic.operations import Operations
from sqlalchemy import BigInteger, Column, ForeignKey, LargeBinary, Text

revision = "0005"
down_revision = "0004"


def upgrade(operations: Operations) -> None:
    """Make the table of savepoints."""
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
