"""Findings about labels: copies, scaled copies, wrong labels."""
