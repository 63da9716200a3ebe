"""Use cases: they know the domain and the ports they need, nothing else."""
