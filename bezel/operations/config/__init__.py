"""Configuration of a stack's services and machines as Google's APIs get it, before anything is deployed."""
