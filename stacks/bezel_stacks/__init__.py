"""Wiring of a plan into resources: one short module for each kind of stack.

Owns the wiring, and the reading of the configuration at the program's edge. Leaves out rules (`bezel.planner`),
resources (`components`) and checks of the running server (`smoke`).
"""
