"""Going back."""
