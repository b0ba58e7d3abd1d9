"""Locks of stacks: one object in the state bucket for each stack that a run changes, which says who, when, which run.

Owns the record and when its owner has ended (`record`), taking it (`taker`), watching and releasing it (`held`), its
status for people (`status`), and the engine's own locks in a bucket (`engine_locks`) and in a folder (`stale_locks`).
Leaves out what runs under it (bezel.engine.run).

There is no heartbeat. That an owner has ended is asked where it is known: of the machine, if it is this one, else of
the forge, which knows the end of a run whose runner died; a heartbeat that stops says neither. An owner whose run the
forge gave up while its process lives on learns that its lock was taken over by reading it (`held.WATCH_SECONDS`), and
ends its command; the taker waits until the engine of such a run must have stopped (`engine_locks.STOP_SECONDS`).
"""
