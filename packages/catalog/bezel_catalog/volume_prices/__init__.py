"""List prices of what is counted in a month, beyond what is free."""
