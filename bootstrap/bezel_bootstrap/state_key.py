"""Key that encrypts the secrets in Pulumi's states: a key of Cloud KMS, rotated every 90 days.

Owns the key ring and the key, which is protected from deletion: without it the secrets in all states are lost. Google
never deletes a key ring, so one of an earlier life is adopted; the key's name is generated, so that it is always a new
one. Leaves out who may use it (`PipelineAccount`).

Example:
    ```python
    key = StateKey("key", StateKeyArgs(project="acme-llm", location="us-east4", key_ring="pulumi"))
    pulumi.export("secrets_provider", key.secrets_provider)
    ```
"""

from collections.abc import Mapping

import pulumi
from pulumi_gcp.kms import CryptoKey, KeyRing
from pydantic import Field

from bezel_components.base.arguments import ComponentArgs, child_options

ROTATION_SECONDS = 90 * 24 * 3600


class StateKeyArgs(ComponentArgs):
    """Arguments of `StateKey`."""

    project: str
    location: str
    key_ring: str
    existing_ring: str = ""
    """Id of the key ring, if there is one from an earlier life of the project."""
    labels: Mapping[str, str] = Field(default_factory=dict)


class StateKey(pulumi.ComponentResource):
    """A rotated key; make what uses it depend on this component.

    Attributes:
        id: `projects/P/locations/L/keyRings/R/cryptoKeys/K`.
        secrets_provider: The key as Pulumi's `--secrets-provider`.
    """

    def __init__(self, name: str, args: StateKeyArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("bezel:bootstrap:StateKey", name, None, opts)
        ring = KeyRing(
            f"{name}-ring",
            project=args.project,
            location=args.location,
            name=args.key_ring,
            opts=child_options(self, opts, import_=args.existing_ring or None),
        )
        key = CryptoKey(
            f"{name}-secrets",
            key_ring=ring.id,
            rotation_period=f"{ROTATION_SECONDS}s",
            labels=dict(args.labels),
            opts=child_options(self, opts, protect=True),
        )
        self.id = key.id
        self.secrets_provider = pulumi.Output.concat("gcpkms://", key.id)
        self.register_outputs({"id": self.id, "secrets_provider": self.secrets_provider})
