"""Options of vLLM against each other and the model, its processor and its tokenizer."""
