"""Load clients that are compared: command lines, parsers of their results, one watched run, errors, tables."""
