"""The project's files: Pulumi.yaml and bezel.toml."""
