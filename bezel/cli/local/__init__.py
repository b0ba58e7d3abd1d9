"""`bezel local`: the embedded cloud alone, the faults in it, and Pulumi stacks on it."""
