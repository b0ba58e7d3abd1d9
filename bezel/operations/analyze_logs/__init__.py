"""Diagnosis of a server from its log."""
