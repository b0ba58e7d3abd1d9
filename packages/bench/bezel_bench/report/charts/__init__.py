"""Charts as SVG and PNG. Leaves out the choice of their data."""
