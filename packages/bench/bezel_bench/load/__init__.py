"""Definition of a load: patterns, virtual users, limits of what can be sent. Pure."""
