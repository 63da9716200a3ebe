"""The actor that is a program of its own: any coding agent's command, seen from outside."""
