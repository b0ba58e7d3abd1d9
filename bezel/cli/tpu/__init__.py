"""`bezel tpu`: find, list, describe, delete, sweep."""
