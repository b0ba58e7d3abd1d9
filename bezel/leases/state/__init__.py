"""State of a lease: observed, desired and ended, and the container that its machine runs. Pure."""
