"""Parts of a stack that a team asks for: vLLM's figures over time, and a door for callers who can only send a key."""
