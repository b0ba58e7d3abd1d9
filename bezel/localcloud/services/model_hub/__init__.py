"""The Hugging Face hub, with synthetic model files."""
