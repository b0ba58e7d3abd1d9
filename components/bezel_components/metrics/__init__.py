"""The collector that writes a server's series to Cloud Monitoring: its container, its configuration, its secret."""
