"""Wiring of the foundation: settings become components, and the components' names become the stack's outputs."""

from typing import Any

import pulumi
from pulumi_gcp.projects import IAMCustomRole

from bezel.foundation import permissions
from bezel.foundation.settings import NAMESPACE, Settings
from bezel.rest import RestError
from bezel_bootstrap import access
from bezel_bootstrap.forge_identity import ForgeIdentity, ForgeIdentityArgs
from bezel_bootstrap.lookups import Existing, Names, look_up, lookup_error
from bezel_bootstrap.pipeline_account import Grant, PipelineAccount, PipelineAccountArgs
from bezel_bootstrap.smoke_account import SmokeAccount, SmokeAccountArgs
from bezel_bootstrap.spending_alert import SpendingAlert, SpendingAlertArgs, display_name
from bezel_bootstrap.stack_guard import StackGuard, StackGuardArgs
from bezel_bootstrap.state_bucket import StateBucket, StateBucketArgs
from bezel_bootstrap.state_key import StateKey, StateKeyArgs
from bezel_components.base import granted_roles
from bezel_components.enabled_apis import EnabledApis, EnabledApisArgs
from bezel_components.lookups.project import project_number

KEY_RING, POOL = "pulumi", "bezel"
# Those of the foundation itself, and those of every stack: the account that deploys can enable none.
APIS = (
    "artifactregistry.googleapis.com",
    "billingbudgets.googleapis.com",
    "cloudbilling.googleapis.com",
    "cloudkms.googleapis.com",
    "cloudquotas.googleapis.com",
    "cloudresourcemanager.googleapis.com",
    "cloudscheduler.googleapis.com",
    "compute.googleapis.com",
    "iam.googleapis.com",
    "iamcredentials.googleapis.com",
    "logging.googleapis.com",
    "monitoring.googleapis.com",
    "run.googleapis.com",
    "secretmanager.googleapis.com",
    "serviceusage.googleapis.com",
    "storage.googleapis.com",
    "sts.googleapis.com",
    "tpu.googleapis.com",
)
ADDRESS_APIS = ("certificatemanager.googleapis.com", "dns.googleapis.com")
"""Those of addresses, where the settings name domains."""
_GRANTABLE = {
    permissions.DEPLOY_PROJECT_GRANTS: granted_roles.ON_PROJECT,
    permissions.DEPLOY_ACCOUNT_GRANTS: granted_roles.ON_ACCOUNT,
    permissions.DEPLOY_RESOURCE_GRANTS: granted_roles.ON_SERVICE_OR_REPOSITORY,
}
# The state of the foundation itself, with its history and its locks: a pipeline that could write it could widen its
# own rights at the next run of an administrator.
_OWN_FOLDERS = tuple(
    f".pulumi/{kind}/{NAMESPACE}/" for kind in ("stacks", "history", "backups", "locks/organization", "locks")
)


def deploy(settings: Settings, project: str) -> dict[str, Any]:
    """Declare the foundation of a project.

    Returns:
        The stack's outputs: what the forge's variables are set to, and what a stack's file names.

    Raises:
        UserError: The project cannot be read.
    """
    number, existing = _looked_up(settings, project)
    labels = {"managed-by": NAMESPACE, "owner": settings.owner, "environment": "prod", "expires-at": "never"}
    apis = EnabledApis("apis", EnabledApisArgs(project=project, services=_apis(settings)))
    bucket = StateBucket(
        "state",
        StateBucketArgs(project=project, bucket=settings.bucket_of(project), location=settings.region, labels=labels),
        opts=_after(apis),
    )
    # The bucket comes first: its name is the world's, and of two first runs at once only one gets it.
    key = StateKey(
        "key",
        StateKeyArgs(
            project=project,
            location=settings.region,
            key_ring=KEY_RING,
            existing_ring=existing.key_ring,
            labels=labels,
        ),
        opts=_after(apis, bucket),
    )
    others: list[pulumi.Resource] = []
    outputs: dict[str, Any] = {"project": project, "backend_url": bucket.url, "secrets_provider": key.secrets_provider}
    if settings.smoke_users:
        smoke = SmokeAccount(
            "smoke",
            SmokeAccountArgs(project=project, account_id=permissions.SMOKE_ACCOUNT, users=settings.smoke_users),
            opts=_after(apis, bucket),
        )
        others.append(smoke)
        outputs["smoke_account"] = smoke.email
    if not settings.no_forge:
        accounts, of_pipeline = _pipeline(settings, project, number, existing, apis, bucket, key)
        others += accounts
        outputs |= of_pipeline
    if settings.billing_account:
        others.append(
            SpendingAlert(
                "spending",
                SpendingAlertArgs(
                    project=project,
                    number=number,
                    billing_account=settings.billing_account,
                    budget=settings.budget,
                    currency=settings.currency,
                    email=settings.alert_email,
                    existing_channel=existing.channel,
                    existing_budget=existing.budget,
                ),
                opts=_after(apis, bucket),
            )
        )
    StackGuard("guard", StackGuardArgs(bucket=bucket.bucket), opts=_after(key, *others))
    return outputs


def _pipeline(
    settings: Settings,
    project: str,
    number: str,
    existing: Existing,
    apis: EnabledApis,
    bucket: StateBucket,
    key: StateKey,
) -> tuple[list[pulumi.Resource], dict[str, Any]]:
    """Declare who deploys by pipeline; return the two accounts, and their outputs."""
    identity = ForgeIdentity(
        "forge",
        ForgeIdentityArgs(
            project=project,
            number=number,
            pool=POOL,
            provider=settings.forge,
            issuer=settings.token_issuer,
            mapping=access.attribute_mapping(settings),
            condition=access.attribute_condition(settings),
            existing_pool=existing.pool,
            existing_provider=existing.provider,
        ),
        opts=_after(apis, bucket),
    )
    roles = [
        IAMCustomRole(
            f"role-{role.id}",
            project=project,
            role_id=role.id,
            title=role.title,
            permissions=list(role.permissions),
            opts=_after(apis, bucket),
        )
        for role in _roles(settings)
    ]
    preview = PipelineAccount(
        "preview",
        _preview(settings, project, number, bucket.bucket, key.id, identity.pool),
        opts=_after(*roles, bucket, key, identity),
    )
    deployer = PipelineAccount(
        "deploy",
        _deploy(settings, project, number, bucket.bucket, key.id, identity.pool),
        opts=_after(*roles, bucket, key, identity),
    )
    outputs = {
        "identity_provider": identity.provider,
        "preview_account": preview.email,
        "deploy_account": deployer.email,
    }
    return [preview, deployer], outputs


def _apis(settings: Settings) -> tuple[str, ...]:
    return tuple(sorted((*APIS, *(ADDRESS_APIS if settings.domains else ()))))


def _roles(settings: Settings) -> list[permissions.CustomRole]:
    """The custom roles that a foundation with these settings grants."""
    left_out = {
        *(() if settings.secrets else (permissions.DEPLOY_SECRETS,)),
        *(() if settings.domains else permissions.OF_DOMAINS),
    }
    return [role for role in permissions.ROLES if role not in left_out]


def _looked_up(settings: Settings, project: str) -> tuple[str, Existing]:
    names = Names(
        project=project,
        location=settings.region,
        key_ring=KEY_RING,
        pool="" if settings.no_forge else POOL,
        provider=settings.forge,
        billing_account=settings.billing_account,
        display_name=display_name(project),
    )
    provider = {
        "displayName": settings.forge,
        "attributeMapping": access.attribute_mapping(settings),
        "attributeCondition": access.attribute_condition(settings),
        "oidc": {"issuerUri": settings.token_issuer},
    }
    try:
        return project_number(project), look_up(names, provider, restores=not pulumi.runtime.is_dry_run())
    except RestError as error:
        raise lookup_error(error, project) from None


def _preview(settings: Settings, project: str, number: str, bucket: str, key: Any, pool: str) -> PipelineAccountArgs:
    """Reads; of writes it may only create objects below `plans/`, and change none."""
    weights = access.one_of_buckets(settings.weights_of(project))
    return PipelineAccountArgs(
        project=project,
        account_id=permissions.PREVIEW_ACCOUNT,
        description="Reads, for previews of pull requests",
        project_roles=(
            Grant(role=_role(project, permissions.PREVIEW)),
            Grant(role=_role(project, permissions.PREVIEW_WEIGHTS), title="weights", condition=weights),
            Grant(
                role=_role(project, permissions.PREVIEW_STACK_SECRETS),
                title="secrets-of-stacks",
                condition=access.secrets_of_stacks((number, project)),
            ),
            *((Grant(role=_role(project, permissions.PREVIEW_ADDRESSES)),) if settings.domains else ()),
        ),
        bucket=bucket,
        bucket_roles=(
            Grant(role="roles/storage.objectViewer"),
            Grant(role="roles/storage.objectCreator", title="plans", condition=access.below(bucket, "plans/")),
        ),
        key=key,
        key_roles=(Grant(role="roles/cloudkms.cryptoKeyDecrypter"),),
        users=(access.principals(pool, access.PREVIEW),),
    )


def _deploy(settings: Settings, project: str, number: str, bucket: str, key: Any, pool: str) -> PipelineAccountArgs:
    """Writes what stacks consist of, and the states of all stacks but the foundation's own, which it cannot read."""
    weights = access.one_of_buckets(settings.weights_of(project))
    grants = [
        Grant(role=_role(project, permissions.DEPLOY)),
        Grant(role=_role(project, permissions.DEPLOY_LEASES)),
        Grant(
            role=_role(project, permissions.DEPLOY_WEIGHTS),
            title="weights",
            condition=access.both(weights, access.only_roles(granted_roles.ON_BUCKET)),
        ),
        Grant(
            role=_role(project, permissions.DEPLOY_STACK_SECRETS),
            title="secrets-of-stacks",
            condition=access.both(
                access.secrets_of_stacks((number, project)), access.only_roles(granted_roles.ON_SECRET)
            ),
        ),
        *(
            Grant(role=_role(project, role), title="roles-of-stacks", condition=access.only_roles(roles))
            for role, roles in _GRANTABLE.items()
        ),
    ]
    if settings.secrets:
        secrets = access.both(
            access.one_of_secrets((number, project), settings.secrets), access.only_roles(granted_roles.ON_SECRET)
        )
        grants.append(Grant(role=_role(project, permissions.DEPLOY_SECRETS), title="secrets", condition=secrets))
    if settings.domains:
        records = access.records_of(settings.domains)
        grants += [
            Grant(role=_role(project, permissions.DEPLOY_ADDRESSES)),
            Grant(role=_role(project, permissions.DEPLOY_RECORDS), title="domains", condition=records),
        ]
    others = f"!({access.below(bucket, *_OWN_FOLDERS)})"
    return PipelineAccountArgs(
        project=project,
        account_id=permissions.DEPLOY_ACCOUNT,
        description="Deploys what was merged",
        project_roles=tuple(grants),
        bucket=bucket,
        bucket_roles=(Grant(role="roles/storage.objectUser", title="other-stacks", condition=others),),
        key=key,
        # A stack's first deploy encrypts its data key.
        key_roles=(Grant(role="roles/cloudkms.cryptoKeyEncrypterDecrypter"),),
        users=(access.principals(pool, access.DEPLOY),),
    )


def _role(project: str, role: permissions.CustomRole) -> str:
    return f"projects/{project}/roles/{role.id}"


def _after(*earlier: pulumi.Resource) -> pulumi.ResourceOptions:
    return pulumi.ResourceOptions(depends_on=list(earlier))
