"""HTTP API of the simulated server: routes, request bodies, responses, streams."""
