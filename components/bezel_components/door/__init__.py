"""The door for callers who can only send a key: a service that admits keys and calls a server as itself."""
