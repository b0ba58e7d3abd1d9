"""Routing of requests to handlers, and the context that every handler gets."""
