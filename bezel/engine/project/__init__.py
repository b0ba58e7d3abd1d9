"""The project on disk: its stacks, its pipeline file, its checkout."""
