"""The resource type fs-directory."""
