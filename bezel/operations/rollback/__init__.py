"""Rollback of a service: its traffic moved to the last revision that passed its check, and pinned there."""
