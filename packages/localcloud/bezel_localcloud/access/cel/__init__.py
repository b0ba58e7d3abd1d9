"""Common Expression Language: parser, operators, functions and bounds of one evaluation. Pure."""
