"""Settings of a stack file, section by section, from a found server."""
