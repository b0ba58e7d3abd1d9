"""Machines with accelerators as the platform sells them, by the TPU API and by Compute Engine: one way for both."""
