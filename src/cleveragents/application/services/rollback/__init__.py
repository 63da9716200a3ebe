"""Going back: the order of a rollback, its files, and what it changes in the record."""
