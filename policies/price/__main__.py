"""Serve the pack to the engine. The call blocks, so this module does nothing else."""

from pulumi_policy import PolicyPack

from policies.price.pack import NAME, POLICIES

PolicyPack(NAME, POLICIES)
