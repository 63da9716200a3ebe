"""The command line: parse, call one service, render."""

from cleveragents.cli.lean import load_click

load_click()  # before any module here imports it
