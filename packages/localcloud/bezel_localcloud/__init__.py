"""localcloud: the Google APIs that the stacks use, on this machine, durable in one directory.

Owns the daemon (`python -m bezel_localcloud DIR`), its REST surface, the platform behind a Cloud Run service and the
model server behind a revision. Leaves out every planning rule and imports nothing of the planner: a check that shares
its figures with what it checks proves nothing.
"""

PROGRAM = "localcloud"
"""The command of this package, as its messages name it."""
