"""Judge of structured outputs, as by the libraries of a real server: a schema, an expression, a grammar, a tag."""
