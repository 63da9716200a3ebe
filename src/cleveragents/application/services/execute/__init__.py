"""Carrying a plan out, step by step, from the start or from where it stopped."""
