"""Isolated copies of resources, and the snapshots of them."""
