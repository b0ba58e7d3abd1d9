"""Back ends: the two APIs that grant leases, their common interface, and the meaning of refusals."""
