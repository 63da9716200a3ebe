"""Actors: whoever decides the next step of a plan."""
