"""Runs migrations on the connection that `trimaran.db.migrate` hands over.

There is no ini file: the URL, the transaction and the lock between processes
are the command's, so that an operator has one way to migrate and it is safe.
"""

from __future__ import annotations

from alembic import context

from trimaran.db.migrate import VERSION_TABLE, all_metadata

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=all_metadata(),
    version_table=VERSION_TABLE,
    render_as_batch=connection.dialect.name == "sqlite",
    # One table a revision can commit alone on MySQL; elsewhere all is one transaction.
    transaction_per_migration=connection.dialect.name == "mysql",
)
with context.begin_transaction():
    context.run_migrations()
