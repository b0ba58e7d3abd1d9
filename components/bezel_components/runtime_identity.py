"""Service account of a model server, with the few rights that it has.

Owns the account and its access to the named secrets. Leaves the right to read the weights to `WeightsBucket`, which
knows the bucket. Grants nothing on the project unless the server writes log entries or series itself: Cloud Run's
platform writes logs and its own metrics, and its own agent pulls images.

Example:
    ```python
    identity = RuntimeIdentity(
        "runtime", RuntimeIdentityArgs(project="acme-llm", account_id="vllm-chat", secrets=("hf-token",))
    )
    pulumi.export("account", identity.email)
    ```
"""

import pulumi
from pulumi_gcp.serviceaccount import Account

from bezel_base.errors import Problem
from bezel_base.text.shell import shell_word
from bezel_components.base.arguments import ComponentArgs, child_options
from bezel_components.base.explained_errors import REFUSED, explaining
from bezel_components.base.granted_roles import LOG_WRITER, METRIC_WRITER, SECRET_ACCESSOR

_NAMES = {LOG_WRITER: ("log-writer", "refused-grant"), METRIC_WRITER: ("metric-writer", "refused-metric-writer")}
"""Role on the project -> ends of the names of its grant and of the hook that explains a refusal."""


class RuntimeIdentityArgs(ComponentArgs):
    """Arguments of `RuntimeIdentity`."""

    project: str
    account_id: str
    """The part before the @: 6 to 30 characters, unique in the project."""
    description: str = "Runs vLLM"
    """What the account is for; `VllmService` writes what it runs."""
    secrets: tuple[str, ...] = ()
    """Ids of Secret Manager secrets of the same project whose values the server reads."""
    writes_logs: bool = False
    """Whether it writes log entries itself, as a leased machine does: it then has that role on the project."""
    writes_metrics: bool = False
    """Whether a collector beside it writes its series: it then has that role on the project, and the one for log
    entries, which Google's page on the collector asks for too."""


class RuntimeIdentity(pulumi.ComponentResource):
    """A service account of least privilege; make what runs as it depend on this component.

    Attributes:
        email: The account's e-mail address, computed, so that a policy can judge it in a preview.
        member: The same as a member of an IAM binding.
    """

    def __init__(self, name: str, args: RuntimeIdentityArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("bezel:identity:RuntimeIdentity", name, None, opts)
        account, self.email = declare_account(self, name, opts, args.project, args.account_id, args.description)
        self.member = f"serviceAccount:{self.email}"
        if args.secrets:
            from pulumi_gcp.secretmanager import SecretIamMember  # 0.1 s that few stacks need

            for secret in sorted(set(args.secrets)):
                SecretIamMember(
                    f"{name}-secret-{secret}",
                    project=args.project,
                    secret_id=secret,
                    role=SECRET_ACCESSOR,
                    member=self.member,
                    opts=child_options(
                        self,
                        opts,
                        depends_on=[account],
                        hooks=explaining(
                            f"{name}-missing-{secret}", ("not found",), _missing_secret(secret, args.project)
                        ),
                    ),
                )
        for role, problem in _roles_on_project(args).items():
            from pulumi_gcp.projects import IAMMember

            resource, hook = _NAMES[role]
            IAMMember(
                f"{name}-{resource}",
                project=args.project,
                role=role,
                member=self.member,
                opts=child_options(
                    self, opts, depends_on=[account], hooks=explaining(f"{name}-{hook}", REFUSED, problem)
                ),
            )
        self.register_outputs({"email": self.email, "member": self.member})


def declare_account(
    component: pulumi.ComponentResource,
    name: str,
    opts: pulumi.ResourceOptions | None,
    project: str,
    account_id: str,
    description: str,
) -> tuple[Account, str]:
    """Declare the service account NAME-account of a component; returns it and its e-mail address, known in a preview.

    Args:
        component: The component, whose child it is.
        name: The component's name.
        opts: The options that the component was made with.
        project: The project.
        account_id: The part before the @: 6 to 30 characters, unique in the project.
        description: What the account is for.
    """
    account = Account(
        f"{name}-account",
        project=project,
        account_id=account_id,
        display_name=description,
        opts=child_options(component, opts),
    )
    return account, service_account_email(account_id, project)


def service_account_email(account_id: str, project: str) -> str:
    """Compute the e-mail address of a service account.

    It holds a project id with a domain, as in `example.com:my-project`, in reverse order.
    """
    domain, _, local = project.rpartition(":")
    return f"{account_id}@{local}{'.' if domain else ''}{domain}.iam.gserviceaccount.com"


def _missing_secret(secret: str, project: str) -> Problem:
    command = f"gcloud secrets create {shell_word(secret)} --project={shell_word(project)} --data-file=FILE"
    return Problem(
        f"secret {secret}",
        f"does not exist in the project {project}",
        "the server could not start, as a variable of its environment would have no value.",
        f"correct the secret's name, or create it from a file with its value: `{command}`; then run the same command "
        "again.",
    )


def _roles_on_project(args: RuntimeIdentityArgs) -> dict[str, Problem]:
    """The roles on the project, each with what it means that it cannot be granted."""
    roles: dict[str, Problem] = {}
    if args.writes_logs or args.writes_metrics:
        setting, consequence = "bezel:observability.metrics", "the collector could not write to the log."
        if args.writes_logs:
            setting = "bezel:observability.alerts"
            consequence = "the machines could not write the notice before their leases end, and no alert would open."
        roles[LOG_WRITER] = _refused_grant(LOG_WRITER, args.project, consequence, setting)
    if args.writes_metrics:
        consequence = "the collector could not write the server's figures, and no chart or alert would have any."
        roles[METRIC_WRITER] = _refused_grant(METRIC_WRITER, args.project, consequence, "bezel:observability.metrics")
    return roles


def _refused_grant(role: str, project: str, consequence: str, setting: str) -> Problem:
    return Problem(
        f"{role} on the project {project}",
        "cannot be granted",
        consequence,
        "give the account that deploys resourcemanager.projects.setIamPolicy for this one role (docs/leases.md, "
        f"Requirements of the project), or set `{setting}` to false.",
    )
