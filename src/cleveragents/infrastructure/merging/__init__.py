"""Bringing the result of a child plan into the sandbox of its parent."""
