"""What each result looks like: data for programs, blocks for people."""
