"""Failures on demand: what can be made to go wrong in localcloud, what is on at the moment, and whom it strikes.

The rules are pure and count: "the next three requests that match", never a share of them. What strikes inside a
container's process is the simulated server's own (`bezel.simulated_vllm.configuration.faults`); it reads a file that
stands here.
"""
