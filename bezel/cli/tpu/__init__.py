"""The `bezel tpu` commands: find, list, describe, delete, sweep."""
