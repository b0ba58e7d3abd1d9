"""The dynamic providers behind the components: what the engine calls."""
