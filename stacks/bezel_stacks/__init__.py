"""A stack's settings become a service: the program's edge.

Owns the reading of the configuration, the choice of the component, and the stack's outputs. Leaves out rules
(`bezel.planner`) and the component itself (`bezel_services`).
"""
