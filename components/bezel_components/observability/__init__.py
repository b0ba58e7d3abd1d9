"""Alerts and a dashboard of a Cloud Run service, in Cloud Monitoring."""
