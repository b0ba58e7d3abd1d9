"""Policy pack `hardware-cost`: limits on the cost, number and duration of accelerators."""
