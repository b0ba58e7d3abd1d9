"""Smoke checks as resources of a deployment: a health check that must pass, and a short benchmark.

Both are dynamic resources, so that the engine orders them, runs them again when the revision changes, fails the update
when they fail, and stores their result in the state. Leaves out the service itself (`components`) and full benchmarks
(`bezel_bench`).
"""
