"""Commands of `bezel-bench` and of `bezel bench`, one module each."""
