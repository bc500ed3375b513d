"""Every table of 0.1.0."""

from alembic.operations import Operations

from services.store.tables import metadata

revision = "0001"
down_revision = None


def upgrade(operations: Operations) -> None:
    """Make the tables as they are now; with the release of 0.1.0 they are written out here."""
    metadata.create_all(operations.get_bind())
