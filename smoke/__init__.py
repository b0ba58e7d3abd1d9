"""What runs after a deployment, as resources of it: a health check that must hold, and a short benchmark.

Both are dynamic resources, so that they are ordered by the engine, run again when the revision changes, fail the
update when they fail, and leave their result in the state. Leaves out: how the service is made (components), and
measuring for its own sake (a load engine's work).
"""
