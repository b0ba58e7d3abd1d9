"""Cloud Monitoring: the use of quotas, notification channels, alert policies, uptime checks and dashboards."""
