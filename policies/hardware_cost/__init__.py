"""The policy pack `hardware-cost`: what accelerators may cost, how many there may be, and when they end."""
