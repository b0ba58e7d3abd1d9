"""localcloud: the Google APIs that the stacks use, on this machine, durable in one directory.

Owns the daemon (`python -m bezel.localcloud DIR`), its REST surface, the platform behind a Cloud Run service and the
model server that stands behind a revision. Leaves out every planning rule: a check that shares its figures with what
it checks proves nothing, so nothing here knows the planner.
"""
