"""Parts of a stack of leased machines: its hours, and the fallback that serves while no lease does."""
