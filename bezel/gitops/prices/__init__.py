"""Prices of the catalogue kept up to date by a pull request: what changed, which stacks it concerns, the request."""
