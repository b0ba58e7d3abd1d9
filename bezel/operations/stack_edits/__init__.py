"""Edits of a stack's file: one setting is written into it, beside what else would change."""
