"""The load: patterns, virtual users, limits of what can be sent. Pure."""
