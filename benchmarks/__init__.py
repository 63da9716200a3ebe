"""Benchmarks: ratios against a peer in one run, and ASV for the time between versions."""
