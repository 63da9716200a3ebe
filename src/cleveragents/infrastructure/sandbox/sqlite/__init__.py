"""The resource type sqlite."""
