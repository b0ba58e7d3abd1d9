"""Report of results: HTML page, Markdown and pictures. Leaves out the meaning of figures (bezel_bench.metrics)."""
