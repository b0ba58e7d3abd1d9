"""Runtime behind Cloud Run's API: instances, autoscaling, ingress, job tasks."""
