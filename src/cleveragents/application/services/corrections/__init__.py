"""Corrections: one decision made differently, and what depends on it taken back."""
