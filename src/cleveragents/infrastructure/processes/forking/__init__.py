"""The fork server: a small process that starts the commands of a plan in our place (ADR 0094)."""
