"""Rules about the regions of a stack and its address: keys, domain, failover. Pure."""
