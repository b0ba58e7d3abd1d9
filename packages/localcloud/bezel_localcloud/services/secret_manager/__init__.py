"""Secret Manager v1."""
