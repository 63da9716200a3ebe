"""The screen of `agents rewind`: keys become a state, a state becomes lines, and lines are drawn.

All but `terminal.py` is pure: what a key does and how it looks can be told without a terminal.
"""
