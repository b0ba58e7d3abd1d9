"""Google APIs, one package each: paths, messages, and the permission that each call needs."""
