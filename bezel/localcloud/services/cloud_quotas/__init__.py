"""Cloud Quotas v1."""
