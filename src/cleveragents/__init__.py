"""Plan execution that can always go back."""

__version__ = "0.1.0"
