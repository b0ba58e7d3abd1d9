"""The `bezel` command: parses arguments, calls the planner, the engine and localcloud, prints. Owns no rules."""
