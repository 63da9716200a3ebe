"""Runs one migration on the connection that `migrate.upgrade` hands over."""

from alembic import context

from cleveragents.infrastructure.database.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
