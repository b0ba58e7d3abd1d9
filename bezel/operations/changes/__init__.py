"""Changes in two steps: a plan that a person or an agent sees, and a confirmation bound to exactly that plan."""
