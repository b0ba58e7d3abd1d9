"""The load client: connections, event loop, response parsing, sender processes."""
