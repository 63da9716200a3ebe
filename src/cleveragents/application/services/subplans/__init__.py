"""Child plans: spawned, run side by side, merged."""
