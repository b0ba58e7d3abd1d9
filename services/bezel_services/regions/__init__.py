"""Children of a service that each of its regions has, and the one address in front of them."""
