"""The ledger of trials: what was tried in this store, on which bars."""

from alembic.operations import Operations
from sqlalchemy import BigInteger, Column, Text

revision = "0007"
down_revision = "0006"


def upgrade(operations: Operations) -> None:
    """Make the table of trials; runs of before are not in it, since they did not note their playbooks."""
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
