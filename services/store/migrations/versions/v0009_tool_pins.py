"""Pins of tools: definitions of other servers' tools, as they were accepted."""

from alembic.operations import Operations
from sqlalchemy import BigInteger, Column, Text

revision = "0009"
down_revision = "0008"


def upgrade(operations: Operations) -> None:
    """Make the table of pins."""
    operations.create_table(
        "tool_pins",
        Column("client", Text, primary_key=True),
        Column("tool", Text, primary_key=True),
        Column("hash", Text, nullable=False),
        Column("definition", Text, nullable=False),
        Column("pinned_ms", BigInteger, nullable=False),
    )
