"""Adoption of a service that exists by a stack: the import file, and the commands that use it."""
