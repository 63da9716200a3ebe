"""A tree made again as a snapshot has it: whole, in part, mended."""
