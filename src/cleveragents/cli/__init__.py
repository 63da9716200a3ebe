"""The command line: parse, call once, render."""
