"""Fidelity of the stand-in `gcp` provider: its requests and its answers against recordings of the published one."""
