"""Vertex AI v1."""
