"""Checks of a stack against the platform: Cloud Run, Cloud Storage, TPU leases, memory, startup."""
