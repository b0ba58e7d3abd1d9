"""Arguments of operations: their models, from which commands, help texts, tools and documents are made."""
