"""The `bezel tpu` commands that are no operations: find, sweep."""
