"""MCP server over stdio: every operation as a tool, plans and documents as resources, and prompts.

Owns the Model Context Protocol face. Leaves out what an operation does (bezel.operations).
"""
