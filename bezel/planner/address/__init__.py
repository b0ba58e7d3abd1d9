"""Rules about the address of a stack: its domain. Pure."""
