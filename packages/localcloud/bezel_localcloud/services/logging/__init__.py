"""Cloud Logging v2: entries and their query language."""
