"""Adapters: they implement the ports and never call a service."""
