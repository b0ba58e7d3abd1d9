"""Cloud Storage v1: buckets, objects, uploads, rewrites."""
