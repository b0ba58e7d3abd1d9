"""The package's schema, made of the argument models of the table's rows; `schema.json` is what the engine gets."""
