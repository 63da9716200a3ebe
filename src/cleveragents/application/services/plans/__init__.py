"""Making plans, and what is asked about them."""
