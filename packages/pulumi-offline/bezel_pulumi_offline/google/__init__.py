"""Google's APIs as the provider calls them: REST, tokens, operations, errors."""
