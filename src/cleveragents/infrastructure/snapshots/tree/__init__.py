"""Snapshots of file trees: captured, compared, restored."""
