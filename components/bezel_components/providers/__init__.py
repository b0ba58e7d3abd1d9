"""Dynamic providers behind the components, called by the engine."""
