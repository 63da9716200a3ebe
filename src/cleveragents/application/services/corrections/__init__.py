"""One decision differently."""
