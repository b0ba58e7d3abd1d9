"""localcloud's own API: faults, breakpoints, inventory."""
