"""Buckets of the JSON API, those that were deleted softly, and the policies of buckets and objects."""
