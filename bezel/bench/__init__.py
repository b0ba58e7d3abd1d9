"""The benchmark: load that is sent, what was seen, what it means, and whether it can be believed.

Knows the catalogue and the planner (what hardware can do at most, what it costs), and no cloud: whoever starts a run
says how requests are authorised. Importing this package loads nothing; each part loads what it needs.
"""
