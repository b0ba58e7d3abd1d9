"""Fault injection: kinds of faults, the active ones, and the requests and operations that they strike.

The rules are pure and count: "the next three requests that match", never a share of them. Failures inside a container's
process belong to the simulated server (`bezel_simulated_vllm.configuration.faults`); it reads a file that this package
writes.
"""
