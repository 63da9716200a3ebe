"""What a person sees while a command works."""
