"""Alembic's migration scripts; a released one is never edited."""
