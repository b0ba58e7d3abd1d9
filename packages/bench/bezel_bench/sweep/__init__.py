"""Several loads in a row: sweeps over contexts and users, searches within limits, comparisons of servers.

Owns the choice of the next load, its estimated cost and the conclusions. Every figure comes from a `Measure`, which is
passed in: sending, reading and checking one load is in `bezel_bench.cell.cell`.
"""
