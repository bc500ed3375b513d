"""Every table of 0.1.0."""

from alembic import op

from services.store.tables import metadata

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Make the tables as they are now; with the release of 0.1.0 they are written out here."""
    metadata.create_all(op.get_bind())
