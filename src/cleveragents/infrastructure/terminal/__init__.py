"""The terminal of whoever started us, and how a program gets one of its own that leads there."""
