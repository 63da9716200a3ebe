"""Our snapshots beside what people use today, in one run: speed, space and fidelity."""
