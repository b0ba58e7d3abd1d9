"""Detection of accelerators in resources of any type, also of types that are unknown here."""
