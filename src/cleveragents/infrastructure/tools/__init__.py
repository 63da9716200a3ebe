"""The built-in tools, and how the tools of an action are run."""
