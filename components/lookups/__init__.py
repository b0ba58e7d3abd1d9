"""Reads from Google before anything is declared. No writes."""
