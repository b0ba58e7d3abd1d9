"""Names of dynamic providers in states made before 0.1.0."""
