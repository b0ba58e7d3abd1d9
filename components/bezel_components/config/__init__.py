"""Pure rules behind the components: configuration texts, address ranges, traffic."""
