"""The `bezel` command. Leaves out every rule: it calls the planner, the engine and localcloud, and prints."""
