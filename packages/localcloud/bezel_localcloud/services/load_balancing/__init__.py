"""Load balancing of Compute Engine: global external Application Load Balancers in front of Cloud Run services."""
