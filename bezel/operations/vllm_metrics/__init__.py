"""Figures of a running vLLM server from its `/metrics`: samples, figures, and what is unhealthy about each. Pure."""
