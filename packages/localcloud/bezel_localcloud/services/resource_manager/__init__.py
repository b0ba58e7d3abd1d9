"""Resource Manager v1."""
