"""Regions of Cloud Run that have an accelerator: open or on invitation, with the quota and the price of an instance."""

from collections.abc import Sequence

from bezel.leases.clock import PlatformClock
from bezel.leases.inventory import new_client
from bezel.operations.zones.zone_search import FINDING_COLUMNS, NOT_JUDGED, Show, limit_text, once, result_or_reason
from bezel.planner.assemble.quota import gpu_quota
from bezel.planner.base.money import text
from bezel.planner.base.settings import PriceRow
from bezel.planner.cost.service_cost import service_cost
from bezel.rest.cloud_quotas import Limit
from bezel_catalog import Accelerator


def find_regions(
    gpu: Accelerator,
    wanted: Sequence[str],
    project: str | None,
    clock: PlatformClock,
    show: Show,
    own_prices: Sequence[PriceRow] = (),
) -> list[dict[str, str]]:
    """Return one row for each region, with the columns of FINDING_COLUMNS.

    Args:
        gpu: The accelerator.
        wanted: Regions to look in; empty for all.
        project: The Google Cloud project, for its quota; None: it is not judged.
        clock: The platform's clock.
        show: Takes each line about a request that failed; a repeated line once.
        own_prices: Price rows of a stack file.
    """
    show_once, quota = once(show), gpu_quota(gpu.id, zonal_redundancy=False)
    rows = []
    with new_client(clock) as client:
        for region in wanted or sorted({*gpu.regions, *gpu.regions_on_invitation}):
            is_open, is_invited = region in gpu.regions, region in gpu.regions_on_invitation
            present = "yes" if is_open else "on invitation" if is_invited else "no"
            limit = NOT_JUDGED
            if project is not None:
                sought = Limit(quota.service, quota.id, region)
                limit = result_or_reason(lambda sought=sought: limit_text(client, project, sought), show_once)  # type: ignore[misc]
            cost = service_cost(
                gpu.id,
                region=region,
                cpu=gpu.min_cpu,
                memory_gib=gpu.min_memory_gib,
                min_instances=0,
                max_instances=1,
                accelerator_count=gpu.gpus_per_instance,
                own_prices=own_prices,
            )
            values = (region, present, "Cloud Run", limit, text(cost.hourly, 2), NOT_JUDGED)
            rows.append(dict(zip(FINDING_COLUMNS, values, strict=True)))
    return rows
