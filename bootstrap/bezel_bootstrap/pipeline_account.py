"""Service account of a pipeline: its roles on the project, the state bucket and the key, and who may act as it.

Owns the account and its grants: each names one member and one role, so that grants by others stay. Leaves out what the
roles hold (`bezel.foundation.permissions`) and which tokens are of which identity (`ForgeIdentity`).

Example:
    ```python
    account = PipelineAccount(
        "preview",
        PipelineAccountArgs(project="acme-llm", account_id="pipeline-preview", description="Reads for previews",
                            project_roles=(Grant(role="projects/acme-llm/roles/bezelPreview"),),
                            users=("principalSet://iam.googleapis.com/POOL/attribute.access/preview",)),
    )
    pulumi.export("preview_account", account.email)
    ```
"""

import pulumi
from pulumi_gcp.kms import CryptoKeyIAMMember
from pulumi_gcp.projects import IAMMember, IAMMemberConditionArgs
from pulumi_gcp.serviceaccount import IAMMember as AccountIAMMember
from pulumi_gcp.storage import BucketIAMMember, BucketIAMMemberConditionArgs

from bezel_components.base.arguments import ComponentArgs, Text, child_options
from bezel_components.runtime_identity import declare_account

USER = "roles/iam.workloadIdentityUser"


class Grant(ComponentArgs):
    """A role, with a condition if it does not hold for everything."""

    role: str
    title: str = ""
    """Title of the condition; "" without one."""
    condition: str = ""
    """Its expression."""

    @property
    def label(self) -> str:
        """Part of the resource's name: the last part of the role, and the condition's title."""
        return "-".join(filter(None, (self.role.rpartition("/")[2].replace(".", "-"), self.title)))


class PipelineAccountArgs(ComponentArgs):
    """Arguments of `PipelineAccount`."""

    project: str
    account_id: str
    description: str
    project_roles: tuple[Grant, ...] = ()
    bucket: str = ""
    """The state bucket."""
    bucket_roles: tuple[Grant, ...] = ()
    key: Text = ""
    """The key of the states' secrets."""
    key_roles: tuple[Grant, ...] = ()
    users: tuple[str, ...] = ()
    """Members that may act as the account."""


class PipelineAccount(pulumi.ComponentResource):
    """A service account of least privilege for one half of a pipeline.

    Attributes:
        email: Its e-mail address, computed.
        member: The same as a member of a binding.
    """

    def __init__(self, name: str, args: PipelineAccountArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("bezel:bootstrap:PipelineAccount", name, None, opts)
        account, self.email = declare_account(self, name, opts, args.project, args.account_id, args.description)
        self.member = f"serviceAccount:{self.email}"
        child = child_options(self, opts, depends_on=[account])
        for grant in args.project_roles:
            IAMMember(
                f"{name}-{grant.label}",
                project=args.project,
                role=grant.role,
                member=self.member,
                condition=(
                    IAMMemberConditionArgs(title=grant.title, expression=grant.condition) if grant.title else None
                ),
                opts=child,
            )
        for grant in args.bucket_roles:
            BucketIAMMember(
                f"{name}-state-{grant.label}",
                bucket=args.bucket,
                role=grant.role,
                member=self.member,
                condition=(
                    BucketIAMMemberConditionArgs(title=grant.title, expression=grant.condition) if grant.title else None
                ),
                opts=child,
            )
        for grant in args.key_roles:
            CryptoKeyIAMMember(
                f"{name}-key-{grant.label}", crypto_key_id=args.key, role=grant.role, member=self.member, opts=child
            )
        for number, user in enumerate(args.users):
            AccountIAMMember(
                f"{name}-user-{number}" if number else f"{name}-user",
                service_account_id=f"projects/{args.project}/serviceAccounts/{self.email}",
                role=USER,
                member=user,
                opts=child,
            )
        self.register_outputs({"email": self.email, "member": self.member})
