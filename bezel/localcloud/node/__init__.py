"""Machines with accelerators on this machine: their boot, metadata, containers and addresses."""
