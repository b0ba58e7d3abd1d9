"""Readers of what others wrote down: command lines, compose files, services of Cloud Run."""
