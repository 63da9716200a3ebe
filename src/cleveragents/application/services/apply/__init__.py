"""Bringing a plan's result into the project."""
