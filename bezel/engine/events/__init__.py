"""Events of a run of the engine, as typed values."""
