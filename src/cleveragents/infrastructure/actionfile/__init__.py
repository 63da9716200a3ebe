"""Action files: read, checked, and described for editors."""
