"""Checkpoint groups: made, recorded, pruned."""
