"""Reading of logs: entries of Cloud Logging and of serial ports, bounds, pages, and cleaned lines."""
