"""Command lines of other load clients as commands of this one."""
