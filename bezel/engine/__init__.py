"""The Pulumi engine on any backend: runs, events, states, locks, recovery, and reports of what a stack changes."""

LOCAL_PULUMI = "BEZEL_LOCAL_PULUMI"
"""Names the `pulumi` of localcloud to `.venv/bin/pulumi`, which a shell may call by its path too."""
