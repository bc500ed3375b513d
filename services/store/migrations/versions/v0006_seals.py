"""Seals: hashes of what is stored beside the journal, so that a change of it is found."""

from alembic.operations import Operations
from sqlalchemy import BigInteger, Column, ForeignKey, Text

revision = "0006"
down_revision = "0005"


def upgrade(operations: Operations) -> None:
    """Make the table of seals."""
    operations.create_table(
        "seals",
        Column("run_id", Text, ForeignKey("runs.run_id"), primary_key=True),
        Column("part", Text, primary_key=True),
        Column("number", BigInteger, primary_key=True, autoincrement=False),
        Column("hash", Text, nullable=False),
    )
