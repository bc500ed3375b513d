"""Paper trading: the bars that a run took, its orders, the paper venue, and running processes."""

from alembic.operations import Operations
from sqlalchemy import BigInteger, Column, ForeignKey, Integer, Text, UniqueConstraint

revision = "0004"
down_revision = "0003"


def upgrade(operations: Operations) -> None:
    """Make the tables of the trading loop."""
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
