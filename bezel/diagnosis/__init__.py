"""Causes that a service's answers, log and platform tell of. Pure but for the client."""
