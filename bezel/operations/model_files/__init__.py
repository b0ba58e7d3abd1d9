"""Model files of buckets, and the models of Vertex AI's registry."""
