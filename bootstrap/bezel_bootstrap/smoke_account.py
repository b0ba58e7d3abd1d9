"""Service account that calls a service in the check of a deploy, and in a shell, and who may call as it.

Google gives a person's login no identity token for a service's address, so the check of a deploy by hand needs an
account. It has no right at all in the project: a stack lets it call its service (`bezel:access: {invokers: [...]}`).
Leaves out who deploys by pipeline (`PipelineAccount`).

Example:
    ```python
    smoke = SmokeAccount(
        "smoke",
        SmokeAccountArgs(project="acme-llm", account_id="bezel-smoke", users=("user:you@acme.example",)),
    )
    pulumi.export("smoke_account", smoke.email)
    ```
"""

import pulumi
from pulumi_gcp.serviceaccount import IAMMember

from bezel_components.base.arguments import ComponentArgs, child_options
from bezel_components.runtime_identity import declare_account

USER = "roles/iam.serviceAccountOpenIdTokenCreator"
"""Lets a member get identity tokens of an account and nothing else: no access tokens, so none of its rights."""


class SmokeAccountArgs(ComponentArgs):
    """Arguments of `SmokeAccount`."""

    project: str
    account_id: str
    users: tuple[str, ...]
    """Members that may get identity tokens of the account."""


class SmokeAccount(pulumi.ComponentResource):
    """A service account without rights, for calls of services.

    Attributes:
        email: Its e-mail address, computed.
    """

    def __init__(self, name: str, args: SmokeAccountArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("bezel:bootstrap:SmokeAccount", name, None, opts)
        description = "Calls services in checks of deploys"
        account, self.email = declare_account(self, name, opts, args.project, args.account_id, description)
        for number, user in enumerate(args.users):
            IAMMember(
                f"{name}-user-{number}" if number else f"{name}-user",
                service_account_id=f"projects/{args.project}/serviceAccounts/{self.email}",
                role=USER,
                member=user,
                opts=child_options(self, opts, depends_on=[account]),
            )
        self.register_outputs({"email": self.email})
