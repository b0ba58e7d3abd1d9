"""One small file for each fault: its formula, what it needs, and how sure it is."""
