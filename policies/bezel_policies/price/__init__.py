"""Policy pack `price`: shows what the accelerators of any program cost, and refuses nothing."""
