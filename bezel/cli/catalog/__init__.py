"""The `bezel catalog` commands: show, check, refresh, record-options."""
