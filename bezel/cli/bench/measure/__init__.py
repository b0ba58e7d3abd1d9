"""What the benchmark commands share: targets, load options, cells, checkpoints."""
