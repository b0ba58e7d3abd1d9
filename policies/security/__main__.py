"""Serves the pack to the engine. The call blocks, so nothing else stands here."""

from pulumi_policy import PolicyPack

from policies.security.pack import NAME, POLICIES

PolicyPack(NAME, POLICIES)
