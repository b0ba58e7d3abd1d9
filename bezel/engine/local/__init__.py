"""The engine on the embedded cloud."""
