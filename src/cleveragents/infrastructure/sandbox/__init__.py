"""Isolated copies of resources: what is done to each type of them, and the registry of types."""
