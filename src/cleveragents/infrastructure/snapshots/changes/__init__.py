"""Which paths of a tree may have changed: four ways to know."""
