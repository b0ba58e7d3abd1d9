"""The HTTP API: routes, request bodies, answers, streams."""
