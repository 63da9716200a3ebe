"""What an installation keeps on the disk: how much it is, and removing all of it."""
