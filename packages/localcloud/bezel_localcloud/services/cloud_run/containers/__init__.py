"""Parts of a revision's containers: volumes, order of their starts. Pure."""
