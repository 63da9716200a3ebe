"""The commands: each parses, calls one service, and shows what came back."""
