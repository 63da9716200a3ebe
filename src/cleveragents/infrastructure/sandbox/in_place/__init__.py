"""The user's own tree as the sandbox: no copy, and only what a group holds is replaced."""
