"""The Pulumi package `bezel`: components and checks of the lower packages for programs in any language."""
