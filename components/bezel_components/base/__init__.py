"""Base of the components: argument models, dynamic providers, and the common Cloud Run service."""
