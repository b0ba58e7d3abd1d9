"""Several loads in a row: sweeps over contexts and users, the highest load within limits, servers against each other.

What is asked next, what it may cost, what is concluded. Every figure comes from a `Measure`, which this package is
given: how one load is sent, read and checked stands in `bezel.bench.cell.cell`.
"""
