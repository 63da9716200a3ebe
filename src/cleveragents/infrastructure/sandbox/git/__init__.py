"""The resource type git-checkout."""
