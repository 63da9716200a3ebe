"""The tools that every plan has."""
