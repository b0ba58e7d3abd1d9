"""Cloud Run behind its API: revisions, instances, probes, scaling, and the ingress of each service."""
