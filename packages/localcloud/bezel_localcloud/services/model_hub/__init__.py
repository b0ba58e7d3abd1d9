"""Stand-in for the Hugging Face hub, with synthetic model files."""
