"""Durable snapshots of file trees: contents, versions, detection of changes, and restore."""
