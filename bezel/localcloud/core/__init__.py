"""What all of localcloud stands on: store, operations, paths, clock, errors. Knows no API."""
