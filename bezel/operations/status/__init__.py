"""Status of stacks: the verdict on each, its revision or lease, its cost."""
