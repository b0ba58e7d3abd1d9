"""Routes of the server beside completions, chat and the APIs over it: batches, decisions, documents."""
