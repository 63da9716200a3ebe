"""Snapshots of a database file, by its pages."""
