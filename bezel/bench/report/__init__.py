"""Results as a page, as Markdown and as pictures. Leaves out what a figure means (bezel.bench.metrics.definitions)."""
