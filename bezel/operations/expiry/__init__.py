"""Expiry of what a project has: stacks by their label, leases by their end."""
