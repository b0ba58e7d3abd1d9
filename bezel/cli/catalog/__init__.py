"""`bezel catalog`: show, check, refresh, record-options."""
