"""Prices: of services, leases and tokens. An unknown price stays unknown."""
