"""Logs of a stack as a page, and further lines as they come."""
