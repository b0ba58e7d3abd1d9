"""Deployment of a stack, read from the engine's state: services, leases, outputs. Leaves out what the cloud has now."""
