"""Upkeep of deployed stacks: drift between cloud and program, expiry, leftovers, and the one issue that reports them.

Leaves out changes of a stack: a deploy mends drift, and only `expiry` destroys.
"""
