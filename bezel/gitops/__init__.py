"""Stacks deployed by a pipeline: what a change concerns, what was reviewed, what judges, drift and expiry.

Owns the work of the commands `bezel ci`. Leaves out their arguments and output (bezel.cli.ci), the resources (stacks)
and the limits of cost (policies).
"""
