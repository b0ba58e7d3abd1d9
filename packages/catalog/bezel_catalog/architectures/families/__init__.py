"""Layers of each family of architectures as vLLM builds it: a module a family, functions of a configuration."""
