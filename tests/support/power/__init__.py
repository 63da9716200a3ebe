"""Pulling the plug: a disk that logs what reaches it, cuts in that log, and a judge of each."""
