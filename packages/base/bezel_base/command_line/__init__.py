"""Command line of a program, from a table of its commands: the parser, and how its errors and its end are shown."""
