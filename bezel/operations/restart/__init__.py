"""Restart of a service: a new revision that is the same as the last one."""
