"""What Cloud Run does behind its API: revisions, instances, probes, scaling, and the front that takes requests."""
