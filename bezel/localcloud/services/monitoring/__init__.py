"""Cloud Monitoring v3: the use of quotas, sampled from what runs, and notification channels."""
