"""`bezel ci`: the steps of a deployment pipeline, one module a command; each can be run by hand."""
