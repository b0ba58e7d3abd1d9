"""Dynamic provider behind the guard of the stacks, called by the engine."""
