"""The Pulumi engine on localcloud: runs, event log, state file, stale locks, recovery."""

LOCAL_PULUMI = "BEZEL_LOCAL_PULUMI"
"""Names the `pulumi` of localcloud to `.venv/bin/pulumi`, which a shell may call by its path too (`local_pulumi`)."""
