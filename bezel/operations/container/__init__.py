"""Containers of a stack's leased machines: started, stopped, restarted."""
