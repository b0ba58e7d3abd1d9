"""Folders of the packs as the engine starts them, for programs that have this package installed.

Beside each stand the shipped limits by environment, e.g. `hardware_cost.dev.json`: the wheel takes them from this
repository's own. `bezel policies path NAME` prints where a pack is.
"""
