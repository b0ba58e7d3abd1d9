"""Compute Engine: links, errors, operations, networks and instances."""
