"""What the TPU API and Compute Engine share: the reconciler of machines, their networks."""
