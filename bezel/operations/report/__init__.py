"""Report on a stack: traffic, latency, failures, cost and hours of some time, as a text and as a page."""
