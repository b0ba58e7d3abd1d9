"""Memory and speed of a model on given hardware: estimates from the catalogue, without prices or rules."""
