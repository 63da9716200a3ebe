"""Processes of a plan: started and held inside, watched, found again, and ended for good."""
