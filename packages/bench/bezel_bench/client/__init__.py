"""Load client: connections, event loop, response parsing, sender processes."""
