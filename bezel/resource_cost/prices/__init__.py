"""Prices of the resources that are known: services with a GPU, leased machines, scheduled minimums."""
