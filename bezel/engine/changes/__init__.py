"""Changes of a stack as a report: planned or done, with their price, the policies' verdict and the outcome."""
