"""Configuration of the collector beside a server, as a secret of Secret Manager, and the server's right to read it.

Nothing in it is secret: a secret is the one kind of file that Google's collector documents for a Cloud Run service.
Owns the secret, its version and the one grant on it. Leaves out the collector (`MetricsSidecar`), and the role that it
writes series with (`RuntimeIdentity`).

Another text is a new version, made before the old one is destroyed; collectors that run read it within half a minute.

Example:
    ```python
    from bezel_components.metrics.run_monitoring import run_monitoring

    configuration = CollectorConfiguration(
        "collector",
        CollectorConfigurationArgs(
            project="acme-llm", secret_id="bezel-stack-chat-collector", reader=identity.email,
            text=run_monitoring(port=8080, interval_seconds=30),
        ),
        opts=pulumi.ResourceOptions(depends_on=[identity]),
    )
    pulumi.export("collector_secret", configuration.secret_id)
    ```
"""

from collections.abc import Mapping

import pulumi
from pulumi_gcp import secretmanager
from pydantic import Field

from bezel_components.base.arguments import ComponentArgs, child_options
from bezel_components.base.granted_roles import SECRET_ACCESSOR


class CollectorConfigurationArgs(ComponentArgs):
    """Arguments of `CollectorConfiguration`."""

    project: str
    secret_id: str
    text: str
    """The configuration, from `run_monitoring`."""
    reader: str
    """E-mail address of the account that the server runs as."""
    labels: Mapping[str, str] = Field(default_factory=dict)
    """Labels of the secret; `VllmService` adds its stack, environment and model."""


class CollectorConfiguration(pulumi.ComponentResource):
    """A secret with a collector's configuration; make the service depend on this component.

    Attributes:
        secret_id: Id of the secret, computed, so that it is known in a preview.
    """

    def __init__(self, name: str, args: CollectorConfigurationArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("bezel:metrics:CollectorConfiguration", name, None, opts)
        self.secret_id = args.secret_id
        secret = secretmanager.Secret(
            f"{name}-secret",
            project=args.project,
            secret_id=args.secret_id,
            replication=secretmanager.SecretReplicationArgs(auto=secretmanager.SecretReplicationAutoArgs()),
            labels=dict(args.labels),
            opts=child_options(self, opts),
        )
        version = secretmanager.SecretVersion(
            f"{name}-version", secret=secret.id, secret_data=args.text, opts=child_options(self, opts)
        )
        secretmanager.SecretIamMember(
            f"{name}-reader",
            project=args.project,
            secret_id=args.secret_id,
            role=SECRET_ACCESSOR,
            member=f"serviceAccount:{args.reader}",
            opts=child_options(self, opts, depends_on=[secret, version]),
        )
        self.register_outputs({"secret_id": self.secret_id})
