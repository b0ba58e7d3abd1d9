"""Changes of a stack by its file: one setting is written into it, and the stack is deployed."""
