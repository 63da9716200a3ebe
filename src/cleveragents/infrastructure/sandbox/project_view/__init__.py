"""How sandboxes come to stand at their projects' own paths while a step runs (ADR 0084)."""
