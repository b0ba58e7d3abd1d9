"""Files of localcloud's directory: contents of objects and images, mounts, locks, the log file."""
