"""From a request to a handler, and the context that every handler gets."""
