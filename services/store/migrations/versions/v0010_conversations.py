"""Conversations: what was asked and answered, with the calls of tools and their results."""

from alembic.operations import Operations
from sqlalchemy import BigInteger, Column, Integer, Text

revision = "0010"
down_revision = "0009"


def upgrade(operations: Operations) -> None:
    """Make the table of turns."""
    operations.create_table(
        "conversation_turns",
        Column("name", Text, primary_key=True),
        Column("number", Integer, primary_key=True, autoincrement=False),
        Column("question", Text, nullable=False),
        Column("document", Text, nullable=False),
        Column("asked_ms", BigInteger, nullable=False),
    )
