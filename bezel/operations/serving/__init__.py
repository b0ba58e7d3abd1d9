"""Reading of a deployed model server: its address and identity, its streams, its first token's time."""
