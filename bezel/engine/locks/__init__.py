"""The engine's own locks."""
