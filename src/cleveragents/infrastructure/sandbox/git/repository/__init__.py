"""The repository that the sandbox of a checkout has to itself, and its state (`state.py`: HEAD,
references and index, captured and restored)."""
