"""The two parts of a layer: what the upper one says of the lower, and both seen as one."""
