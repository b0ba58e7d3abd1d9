"""Calls of google-cloud-storage: every public method of clients, buckets, objects, transfers and batches.

Prints one JSON object a line: {"client", "call", "outcome", "text"}. Needs GOOGLE_APPLICATION_CREDENTIALS and
GOOGLE_STORAGE_CUSTOM_ENDPOINT, and in TRIED_KMS_KEY the name of a key that Cloud Storage may use.
"""

import importlib

from storage_parts import common

for part in ("buckets", "uploads", "lists", "changes", "transfers", "signatures", "ends"):
    importlib.import_module(f"storage_parts.{part}")
common.run()
