"""The collector beside a server on Cloud Run, with its configuration, where the stack keeps vLLM's figures."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pulumi

from bezel.planner import AnyPlan
from bezel.planner.team.series_labels import collector_secret
from bezel_components.metrics.sidecar import MetricsSidecar
from bezel_components.runtime_identity import RuntimeIdentity
from bezel_services.children import Children

if TYPE_CHECKING:
    from bezel_components.observability.figures import ServerFigures

_MIB = 1024


def server_figures(plan: AnyPlan, matchers: str) -> "ServerFigures | None":
    """What alerts and dashboard read of a server's series; None where the stack keeps none."""
    if plan.metrics is None:
        return None
    from bezel_components.observability.figures import ServerFigures

    chosen = plan.settings.observability
    return ServerFigures(
        matchers=matchers,
        max_ttft_seconds=chosen.max_ttft_seconds,
        max_tpot_seconds=chosen.max_tpot_seconds,
        drafts=plan.gain is not None,
    )


@dataclass(frozen=True)
class DeclaredCollector:
    """A collector, and what has to be there before it starts.

    Attributes:
        sidecar: The container; None where the stack keeps no figures.
        earlier: Its configuration.
    """

    sidecar: MetricsSidecar | None = None
    earlier: tuple[pulumi.Resource, ...] = ()


def declare_collector(
    plan: AnyPlan,
    children: Children,
    identity: RuntimeIdentity,
    *,
    service: str,
    port: int,
    labels: Mapping[str, str],
    earlier: tuple[pulumi.Resource, ...],
) -> DeclaredCollector:
    """Declare the configuration of the collector beside each instance of a service, in all regions alike.

    Args:
        plan: Plan of the service.
        children: Children of its component.
        identity: Account that the service runs as.
        service: Name of the service.
        port: Port of the server.
        labels: Labels of the secret.
        earlier: What has to be there before.
    """
    planned = plan.metrics
    if planned is None:
        return DeclaredCollector()
    from bezel_components.metrics.configuration import CollectorConfiguration, CollectorConfigurationArgs
    from bezel_components.metrics.run_monitoring import run_monitoring

    args = CollectorConfigurationArgs(
        project=plan.project,
        secret_id=collector_secret(service),
        text=run_monitoring(port=port, interval_seconds=planned.interval_seconds),
        reader=identity.email,
        labels=labels,
    )
    configuration = CollectorConfiguration(children.name_of("collector"), args, opts=children.after(*earlier))
    image = planned.image
    sidecar = MetricsSidecar(
        image=f"{image.registry}/{image.repository}@{image.digest}",
        secret=configuration.secret_id,
        cpu=float(planned.cpu),
        memory_mib=int(planned.memory_gib * _MIB),
    )
    return DeclaredCollector(sidecar, (configuration,))
