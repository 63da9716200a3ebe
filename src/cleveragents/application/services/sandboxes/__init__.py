"""The care of sandboxes: removed, made again, and compared after a restart."""
