"""How a plan becomes resources: one short module for each kind of stack.

Where not to put code: a rule belongs to `bezel.planner`, a resource to `components`, a check of the running server to
`smoke`. What stands here is the wiring, and the reading of the configuration at the program's edge.
"""
