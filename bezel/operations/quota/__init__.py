"""Quotas of the project: limit and use by place, and requests for more."""
