"""Serve the pack to the engine. The call blocks, so this module does nothing else."""

from pulumi_policy import PolicyPack

from bezel_base.loopback.grpc_guard import guard_servers
from bezel_policies.hardware_cost.pack import NAME, POLICIES

# Another user of the machine could set other limits, or read what is judged.
guard_servers()
PolicyPack(NAME, POLICIES)
