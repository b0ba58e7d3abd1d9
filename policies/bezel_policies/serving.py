"""Server of a pack, for its folder's `__main__`."""

from collections.abc import Sequence

from pulumi_policy import Policy, PolicyPack

from bezel_base.loopback.grpc_guard import guard_servers


def serve(name: str, policies: Sequence[Policy]) -> None:
    """Serve the policies to the engine; returns when the engine has ended.

    Args:
        name: The pack's name.
        policies: Its policies.
    """
    # Another user of the machine could set other limits, or read what is judged.
    guard_servers()
    PolicyPack(name, list(policies))
