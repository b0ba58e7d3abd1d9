"""Use of a Cloud Run service: its instances and counters, by Cloud Monitoring."""
