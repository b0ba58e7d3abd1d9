"""Keys of a stack's door: made, listed, replaced and revoked, and their use by key, team and day."""
