"""Serve the pack to the engine. The call blocks, so this module does nothing else."""

from bezel_policies.hardware_cost.pack import NAME, POLICIES
from bezel_policies.serving import serve

serve(NAME, POLICIES)
