"""`bezel bench`: one module a command."""
