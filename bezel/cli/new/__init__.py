"""`bezel new` and `bezel upgrade`: a project, further stacks in it, and what a newer version would write."""
