"""Service account of the jobs that request and delete a stack's machines by the hour.

It may request and delete machines in the networks of its project, and run them as one account; no more. Neither API
has grants on a single lease, which does not exist before it is requested: give stacks with hours a project of their own
where this account must not reach other machines. Leaves out the jobs (`LeaseHours`).

Example:
    ```python
    scheduling = SchedulingIdentity("scheduling", SchedulingIdentityArgs(
        project="acme-llm", account_id="v6e4-hours", runtime_account=identity.email, back_end="queued_resource",
        stack="v6e4",
    ), opts=pulumi.ResourceOptions(depends_on=[identity]))
    ```
"""

import pulumi
from pulumi_gcp import projects, serviceaccount

from bezel.leases.requests import BackEndName
from bezel_base.errors import Problem
from bezel_components.base.arguments import ComponentArgs, child_options
from bezel_components.base.explained_errors import REFUSED, explaining
from bezel_components.base.granted_roles import ACCOUNT_USER, INSTANCE_ADMIN, NETWORK_USER, TPU_ADMIN
from bezel_components.runtime_identity import declare_account

# The role of Compute Engine holds the use of networks.
_LEASES: dict[BackEndName, tuple[str, ...]] = {
    "queued_resource": (TPU_ADMIN, NETWORK_USER),
    "flex_start_vm": (INSTANCE_ADMIN,),
}


class SchedulingIdentityArgs(ComponentArgs):
    """Arguments of `SchedulingIdentity`."""

    project: str
    account_id: str
    """Id of the account: 6 to 30 characters, unique in the project."""
    runtime_account: str
    """E-mail address of the account that the machines run as."""
    back_end: BackEndName
    stack: str


class SchedulingIdentity(pulumi.ComponentResource):
    """Service account of the jobs of a stack's leases: it requests and deletes machines, and runs them as one account.

    Attributes:
        email: Its e-mail address, computed.
    """

    def __init__(self, name: str, args: SchedulingIdentityArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("bezel:lease:SchedulingIdentity", name, None, opts)
        purpose = f"Leases machines of {args.stack} by the hour"
        account, self.email = declare_account(self, name, opts, args.project, args.account_id, purpose)
        member = f"serviceAccount:{self.email}"
        for role in _LEASES[args.back_end]:
            projects.IAMMember(
                f"{name}-{role.removeprefix('roles/')}",
                project=args.project,
                role=role,
                member=member,
                opts=child_options(
                    self, opts, depends_on=[account], hooks=explaining(f"{name}-{role}", REFUSED, _refusal(role, args))
                ),
            )
        serviceaccount.IAMMember(
            f"{name}-runs-as",
            service_account_id=f"projects/{args.project}/serviceAccounts/{args.runtime_account}",
            role=ACCOUNT_USER,
            member=member,
            opts=child_options(self, opts, depends_on=[account]),
        )
        self.register_outputs({"email": self.email})


def _refusal(role: str, args: SchedulingIdentityArgs) -> Problem:
    return Problem(
        f"{role} on the project {args.project}",
        "cannot be granted",
        f"the jobs of `lease.hours` could not lease the machines of {args.stack}.",
        "give the account that deploys resourcemanager.projects.setIamPolicy for the jobs' roles (docs/leases.md, "
        "Requirements of the project; the deploy account of a pipeline gets it by `bezel init`, run again), or remove "
        "`bezel:lease.hours`.",
    )
