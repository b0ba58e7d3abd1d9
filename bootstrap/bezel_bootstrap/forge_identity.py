"""Identity of a forge's jobs: a federation pool, and the provider that accepts the tokens of one repository.

Owns the pool and the provider. A token of any other repository is refused, whatever it says (`bezel_bootstrap.access`).
Both are only marked as deleted for 30 days when they are destroyed, and are adopted afterwards
(`bezel_bootstrap.lookups`). Leaves out what an identity may do (`PipelineAccount`).

Example:
    ```python
    identity = ForgeIdentity(
        "forge",
        ForgeIdentityArgs(project="acme-llm", number="123456789012", pool="bezel", provider="github",
                          issuer="https://token.actions.githubusercontent.com", mapping=attribute_mapping(settings),
                          condition=attribute_condition(settings)),
    )
    pulumi.export("identity_provider", identity.provider)
    ```
"""

from collections.abc import Mapping

import pulumi
from pulumi_gcp.iam import WorkloadIdentityPool, WorkloadIdentityPoolProvider, WorkloadIdentityPoolProviderOidcArgs

from bezel_components.base.arguments import ComponentArgs, child_options

POOL_DESCRIPTION = "Jobs of the forge that deploy by pipeline (bezel-bootstrap)"
"""Also the mark by which a pool of an earlier life is known as our own."""


class ForgeIdentityArgs(ComponentArgs):
    """Arguments of `ForgeIdentity`."""

    project: str
    number: str
    """Number of the project, which the names of identities have."""
    pool: str
    provider: str
    issuer: str
    mapping: Mapping[str, str]
    """Attribute -> expression over the token's claims."""
    condition: str
    """Expression that a token must fulfil."""
    existing_pool: str = ""
    """Id of the pool, if there is one from an earlier life of the project."""
    existing_provider: str = ""
    """Id of the provider, likewise."""


class ForgeIdentity(pulumi.ComponentResource):
    """The pool of the forge's identities; make the bindings of its members depend on this component.

    Attributes:
        pool: `projects/NUMBER/locations/global/workloadIdentityPools/POOL`, computed.
        provider: The same with `/providers/PROVIDER`: the audience of the forge's tokens is derived from it.
    """

    def __init__(self, name: str, args: ForgeIdentityArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("bezel:bootstrap:ForgeIdentity", name, None, opts)
        pool = WorkloadIdentityPool(
            f"{name}-pool",
            project=args.project,
            workload_identity_pool_id=args.pool,
            display_name="Pipelines",
            description=POOL_DESCRIPTION,
            opts=child_options(self, opts, import_=args.existing_pool or None),
        )
        WorkloadIdentityPoolProvider(
            f"{name}-provider",
            project=args.project,
            workload_identity_pool_id=args.pool,
            workload_identity_pool_provider_id=args.provider,
            display_name=args.provider,
            attribute_mapping=dict(args.mapping),
            attribute_condition=args.condition,
            oidc=WorkloadIdentityPoolProviderOidcArgs(issuer_uri=args.issuer),
            opts=child_options(self, opts, depends_on=[pool], import_=args.existing_provider or None),
        )
        self.pool = f"projects/{args.number}/locations/global/workloadIdentityPools/{args.pool}"
        self.provider = f"{self.pool}/providers/{args.provider}"
        self.register_outputs({"pool": self.pool, "provider": self.provider})
