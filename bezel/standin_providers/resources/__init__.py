"""Table of every resource type that the stand-in supports, by Pulumi's token."""

from bezel.standin_providers.lifecycle.resource import ResourceType
from bezel.standin_providers.resources import (
    accounts,
    artifacts,
    buckets,
    networks,
    objects,
    routers,
    run,
    secrets,
    services,
)

TYPES: dict[str, ResourceType] = {
    row.pulumi_type: row
    for row in (
        *accounts.ROWS,
        *artifacts.ROWS,
        *buckets.ROWS,
        *networks.ROWS,
        *objects.ROWS,
        *routers.ROWS,
        *run.ROWS,
        *secrets.ROWS,
        *services.ROWS,
    )
}
