"""Changes made outside of the program to what a stack has, by what its state and those of its neighbours declare."""

from collections import defaultdict
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

from bezel.engine.state.folder import mask_secrets
from bezel.operations.context import Context
from bezel.outside_changes.change import Findings
from bezel.outside_changes.declared import Declared, Grant, declared_in, entries_in
from bezel.outside_changes.reading import Cloud, outside_changes
from bezel.rest import GoogleClient

_REQUEST_SECONDS = 10.0
_READERS = 8


def declared_by(resources: Any) -> Declared:
    """What the resources of a state declare; secrets are `[secret]`."""
    return declared_in(entries_in(mask_secrets(list(resources))))


def outside_of(
    context: Context,
    stack: str,
    declared: Declared,
    *,
    services: Mapping[str, Mapping[str, Any]] | None = None,
    seconds: float = 15.0,
) -> Findings:
    """The changes made outside of the program.

    Args:
        context: The context; it names the backend and the addresses.
        stack: Name of the stack.
        declared: What its program declares.
        services: Services that were read already, by name.
        seconds: Deadline of all requests together.
    """

    @cache
    def elsewhere() -> dict[str, set[Grant]]:
        """The grants that the backend's other stacks declare."""
        by_name: defaultdict[str, set[Grant]] = defaultdict(set)
        others = [name for name in context.stacks() if name != stack]
        with ThreadPoolExecutor(_READERS) as readers:
            for deployment in readers.map(context.deployment, others):
                for name, grants in declared_by(deployment.resources).grants.items():
                    by_name[name] |= grants
        return by_name

    limit = min(_REQUEST_SECONDS, seconds)
    with GoogleClient(context.credentials, timeout_seconds=limit, deadline_seconds=limit) as client:
        cloud = Cloud(client, context.environ, seconds)
        return outside_changes(declared, cloud, services=services, elsewhere=elsewhere)
