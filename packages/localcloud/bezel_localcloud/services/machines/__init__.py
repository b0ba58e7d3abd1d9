"""Machines behind the TPU API and Compute Engine: the reconciler, networks, and TPU responses."""
