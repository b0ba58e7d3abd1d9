"""Settings and rules of a project's foundation. Pure."""
