"""What steps do outside of their sandboxes."""
