"""Lookups at Google before anything is declared. No writes."""
