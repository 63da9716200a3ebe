"""Bringing a plan's result into the user's folder, and taking it back."""
