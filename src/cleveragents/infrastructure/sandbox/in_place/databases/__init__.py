"""Databases of the user's that are worked on where they are."""
