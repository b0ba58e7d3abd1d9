"""Inference from measured cells: figures for other cells with their ranges, and knees. Pure."""
