"""Compute Engine's own ways: links, errors, operations, and the rules of networks and machines."""
