"""Cloud TPU v2alpha1: queued resources and nodes."""
