"""One owner per plan: locks, who holds them, and their heartbeats."""
