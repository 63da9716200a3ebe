"""How coding agents are told to call our hooks: for one run, in none of the user's files."""
