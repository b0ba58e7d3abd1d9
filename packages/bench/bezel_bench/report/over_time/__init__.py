"""Figures over the time of a load: the server's own metrics, and those of its platform."""
