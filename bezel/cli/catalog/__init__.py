"""The `bezel catalog` commands: show, check, refresh, record-release, record-options."""
