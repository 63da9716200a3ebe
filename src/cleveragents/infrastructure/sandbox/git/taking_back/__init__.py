"""Taking an apply to a checkout back, and bringing it again."""
