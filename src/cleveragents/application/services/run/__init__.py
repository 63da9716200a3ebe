"""A program run in a plan of its own, without an action file."""
