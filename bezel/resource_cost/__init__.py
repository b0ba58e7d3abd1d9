"""Accelerators of Pulumi resources and their price, read from the resources' own inputs, of any program.

Owns which resource types are known, the detection of accelerators on all others, and the sums over a list of resources.
Leaves the prices to `bezel.planner` and the limits to `policies`.
"""
