"""One cell: drain the server, send the load, measure, check, record."""
