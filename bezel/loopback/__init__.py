"""Who may reach a port of this machine: the peer's user, for ASGI applications and gRPC servers."""
