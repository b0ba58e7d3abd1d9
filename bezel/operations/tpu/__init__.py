"""Leases of a project one by one, whether a stack requested them or an operator."""
