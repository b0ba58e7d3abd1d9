"""Loads sent by the tasks of a Cloud Run job: runner, exchange through a bucket, cleanup."""
