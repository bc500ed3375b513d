"""What Alembic runs a migration in: the connection and the transaction of the caller."""

from alembic import context

given = context.config.attributes
context.configure(connection=given["connection"], version_table=given["version_table"])
with context.begin_transaction():
    context.run_migrations()
