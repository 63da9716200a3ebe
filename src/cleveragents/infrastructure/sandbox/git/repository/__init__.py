"""The repository that the sandbox of a checkout has to itself, and its state."""
