"""Plans as text, as stack outputs, and the schema of the settings."""
