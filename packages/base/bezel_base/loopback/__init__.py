"""Access to a port of this machine by the peer's user, for ASGI applications and gRPC servers."""
