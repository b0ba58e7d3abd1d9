"""Plan of a stack: what it deploys, needs and costs."""
