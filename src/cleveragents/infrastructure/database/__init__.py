"""SQLite behind repositories and a unit of work."""
