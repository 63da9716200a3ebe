"""Bringing a plan's result into the user's checkout, and taking it back."""
