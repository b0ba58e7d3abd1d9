"""Rules for selling machines with accelerators, shared by the TPU API and Compute Engine."""
