"""Base of localcloud: store, operations, paths, clock, errors. Knows no API."""
