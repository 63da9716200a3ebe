"""Changing a set of paths, all of them or none: staged, kept, renamed, put back."""
