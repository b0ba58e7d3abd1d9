"""Cloud Logging v2: entries, their query language, and metrics that count them."""
