"""Check, diff, create, read, update and delete of any resource type."""
