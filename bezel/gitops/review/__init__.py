"""Review of planned changes: previews stored for it, their digest and report, and deploys that keep to them."""
