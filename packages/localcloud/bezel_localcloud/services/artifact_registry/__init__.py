"""Artifact Registry and the registry protocol: repositories, manifests, images."""
