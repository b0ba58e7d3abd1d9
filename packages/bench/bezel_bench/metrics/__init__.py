"""Metrics of a cell: latencies, rates, shares, and the statistics behind them."""
