"""Machines with accelerators, run as processes of this computer: boot, metadata, containers, addresses."""
