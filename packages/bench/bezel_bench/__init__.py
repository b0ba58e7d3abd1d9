"""Benchmark of a server: send load, record the responses, compute the metrics and check their validity.

Knows the catalogue and the planner (upper bounds and prices of hardware), and no cloud: the caller that starts a run
provides the authorisation of requests. Importing this package loads nothing; each part loads what it needs.
"""

ENGINE = ""
"""`compiled`, or why an installed `bezel-bench-compiled` is not in use; empty where none is installed."""
try:
    import bezel_bench_compiled
except ImportError:
    pass
else:
    from bezel_bench.compiled_modules import prefer_compiled

    ENGINE = prefer_compiled(bezel_bench_compiled)
