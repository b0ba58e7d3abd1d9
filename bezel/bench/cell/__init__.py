"""One cell: drained, loaded, measured, checked, recorded."""
