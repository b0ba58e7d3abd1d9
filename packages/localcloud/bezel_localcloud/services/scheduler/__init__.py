"""Cloud Scheduler v1: jobs that send a request to an HTTP target when they are due."""
