"""The care of what is stored."""
