"""Repositories inside a checkout, on every level."""
