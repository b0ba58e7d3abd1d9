"""Accuracy of sweeps: fully measured grids, methods that infer one from a share of its requests, and their errors."""
