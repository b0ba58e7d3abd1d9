"""Upkeep by the pipeline: destroying what has expired, and the one issue that reports drift and expiry.

Leaves out finding them (bezel.upkeep). A deploy that reads the cloud mends drift, and only `expiry_run` destroys.
"""
