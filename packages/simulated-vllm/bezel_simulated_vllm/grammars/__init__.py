"""Whether a server's libraries of structured outputs take a constraint: a schema, an expression, a grammar, a tag."""
