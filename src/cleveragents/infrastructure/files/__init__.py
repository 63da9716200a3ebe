"""Safe access to files, below everything that touches a disk."""
