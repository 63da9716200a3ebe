"""Worlds, servers and proofs that more than one suite of tests needs."""
