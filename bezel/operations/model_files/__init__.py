"""Model files: what buckets and Vertex AI's registry hold, and the copy of a model into a stack's bucket."""
