"""Charts as SVG and PNG. Leaves out what is drawn."""
