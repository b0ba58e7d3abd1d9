"""Collector beside a server on Cloud Run: a second container that writes the server's series to Cloud Monitoring.

It is a typed value, as `VllmContainer` is; `CloudRunGpuService` renders it. It starts once the server has passed its
startup probe, scrapes it ten seconds later, at each interval, and once more when the instance ends.

Owns the container and the volume with its configuration. Leaves that configuration and its secret to
`CollectorConfiguration`, and the account's role to `RuntimeIdentity` (`writes_metrics`).

Facts: Cloud Run pulls Google's public images from Artifact Registry itself, so no copy in the project's own registry is
needed: no limit of Docker Hub is in the way. A secret that is mounted as `latest` is read anew each time, so another
configuration needs no new revision (docs of Cloud Run, November 2026).

Example:
    ```python
    sidecar = MetricsSidecar(
        image="us-docker.pkg.dev/google/cloud-run-gmp-sidecar@sha256:…", secret="bezel-stack-chat-collector"
    )
    ```
"""

from pulumi_gcp import cloudrunv2
from pydantic import Field

from bezel.planner.team.series_labels import COLLECTOR
from bezel_components.base.arguments import ComponentArgs
from bezel_components.metrics.run_monitoring import FILE, FOLDER

_VOLUME = "collector"
_READ_BY_ALL = 0o444


class MetricsSidecar(ComponentArgs):
    """Google's collector for Cloud Run in a container."""

    image: str = Field(pattern="@sha256:")
    """Reference of the image, by digest."""
    secret: str
    """Id of the secret with its configuration; see `CollectorConfiguration`."""
    cpu: float = 1
    memory_mib: int = 1024

    def cloud_run_container(self, server: str) -> cloudrunv2.ServiceTemplateContainerArgs:
        """Render the container of a Cloud Run revision.

        Args:
            server: Name of the container that it waits for.
        """
        return cloudrunv2.ServiceTemplateContainerArgs(
            name=COLLECTOR,
            image=self.image,
            depends_ons=[server],
            resources=cloudrunv2.ServiceTemplateContainerResourcesArgs(
                limits={"cpu": f"{self.cpu:g}", "memory": f"{self.memory_mib}Mi"}, cpu_idle=False
            ),
            volume_mounts=[cloudrunv2.ServiceTemplateContainerVolumeMountArgs(name=_VOLUME, mount_path=FOLDER)],
        )

    def cloud_run_volume(self) -> cloudrunv2.ServiceTemplateVolumeArgs:
        """Render the volume of a Cloud Run revision, with the newest version of the secret."""
        item = cloudrunv2.ServiceTemplateVolumeSecretItemArgs(path=FILE, version="latest")
        return cloudrunv2.ServiceTemplateVolumeArgs(
            name=_VOLUME,
            secret=cloudrunv2.ServiceTemplateVolumeSecretArgs(
                secret=self.secret, default_mode=_READ_BY_ALL, items=[item]
            ),
        )
