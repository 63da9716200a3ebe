"""How commands are held inside: Landlock, a read-only view, a filter of calls, bubblewrap."""
