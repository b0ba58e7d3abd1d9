"""The Pulumi engine on localcloud: runs, event log, state file, stale locks, recovery."""
