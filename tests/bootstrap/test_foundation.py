"""What the foundation consists of, declared without an engine."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from pulumi_policy import EnforcementLevel, ResourceValidationPolicy

from bezel.engine.project.project import Project
from bezel.foundation.settings import checked_settings
from bezel.planner import make_plan
from bezel_base.errors import UserError
from bezel_bootstrap.deploy import APIS, deploy
from bezel_bootstrap.forge_identity import POOL_DESCRIPTION
from bezel_bootstrap.smoke_account import USER as SMOKE_USER
from tests.support.bootstrap.project import BUCKET, NUMBER, POOL, PROJECT, PROVIDER, SETTINGS, FakeProject
from tests.support.components.fake_engine import Declarations, declare, has_unknown
from tests.support.policies.harness import POLICIES, example, violations

GOLDEN = Path(__file__).parent / "goldens" / "foundation.json"
STACKS = Project(Path(__file__).parents[2])
MEMBERS = ("iAMMember:IAMMember", "bucketIAMMember:BucketIAMMember", "cryptoKeyIAMMember:CryptoKeyIAMMember")


def declarations_of(*, preview: bool = False, **changes: Any) -> Declarations:
    settings = checked_settings(SETTINGS | changes, PROJECT)
    return declare(lambda: deploy(settings, PROJECT), preview=preview)


def grants(made: Declarations) -> set[tuple[str, str]]:
    return {
        (str(resource.inputs["member"]), str(resource.inputs["role"]))
        for token in MEMBERS
        for resource in made.of(token)
    }


@pytest.mark.slow
def test_the_resources_and_their_inputs_stay_as_they_are() -> None:
    made = {
        resource.urn: resource.inputs
        for resource in sorted(declarations_of(secrets=("hf-token",)).all, key=lambda one: one.urn)
        if not resource.type.startswith("pulumi:")
    }
    made = {urn: {key: value for key, value in one.items() if key != "__provider"} for urn, one in made.items()}
    text = json.dumps(made, indent=1, sort_keys=True) + "\n"
    if os.environ.get("BEZEL_RECORD"):
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text(text)
    assert text == GOLDEN.read_text(), "BEZEL_RECORD=1 pytest tests/bootstrap/test_foundation.py records it again"


HANDS = {"no_forge": True, "region": "us-east4", "smoke_users": ("user:you@acme.example",)}
"""Settings of a project without a forge."""


@pytest.mark.slow
def test_without_a_forge_only_state_key_and_smoke_account_are_made(project: FakeProject) -> None:
    # A pool that was deleted stays so, as nothing here would use it.
    project.resources[POOL] = {"state": "DELETED", "description": POOL_DESCRIPTION}
    made = declare(lambda: deploy(checked_settings(HANDS, PROJECT), PROJECT))
    kinds = {one.type.rpartition(":")[2] for one in made.all if one.type.startswith("gcp:")}
    assert kinds == {"Service", "Bucket", "KeyRing", "CryptoKey", "Account", "IAMMember"}
    assert made.one("account:Account").inputs["accountId"] == "bezel-smoke"
    (grant,) = made.of("serviceaccount/iAMMember:IAMMember")
    assert (grant.inputs["member"], grant.inputs["role"]) == (HANDS["smoke_users"][0], SMOKE_USER)
    assert project.changes == []
    guard = made.one("StackGuard")
    assert [one.name for one in made.all if one.type.startswith("gcp:") and not made.waits_for(guard, one)] == []


@pytest.mark.slow
def test_a_budget_is_made_without_a_forge_where_an_account_is_named() -> None:
    billed = HANDS | {"billing_account": SETTINGS["billing_account"], "alert_email": SETTINGS["alert_email"]}
    made = declare(lambda: deploy(checked_settings(billed, PROJECT), PROJECT))
    assert made.one("budget:Budget").inputs["billingAccount"] == SETTINGS["billing_account"]
    assert not made.of("WorkloadIdentityPool")


@pytest.mark.slow
def test_a_pipeline_has_a_smoke_account_only_for_named_users() -> None:
    assert not [one for one in declarations_of().all if "smoke" in one.name]
    assert declarations_of(smoke_users=HANDS["smoke_users"]).of("bootstrap:SmokeAccount")


@pytest.mark.slow
def test_the_bucket_is_private_versioned_and_never_emptied() -> None:
    """The bucket is private, versioned and never emptied or deleted by a mistake."""
    bucket = declarations_of().one("bucket:Bucket")
    assert bucket.inputs["name"] == BUCKET
    assert bucket.inputs["uniformBucketLevelAccess"] is True
    assert bucket.inputs["publicAccessPrevention"] == "enforced"
    assert bucket.inputs["versioning"] == {"enabled": True}
    assert bucket.inputs["forceDestroy"] is False
    assert bucket.protected
    assert declarations_of().one("cryptoKey:CryptoKey").protected


@pytest.mark.slow
def test_everything_is_deleted_after_the_guard() -> None:
    made = declarations_of()
    guard = made.one("StackGuard")
    others = [one for one in made.all if one is not guard and one.type.startswith("gcp:")]
    assert len(others) > 40
    assert [one.name for one in others if not made.waits_for(guard, one)] == []


@pytest.mark.slow
def test_the_bucket_is_made_before_anything_another_project_could_lose() -> None:
    """The bucket is made before anything that another project could not take away."""
    made = declarations_of()
    bucket = made.one("bucket:Bucket")
    others = [one for one in made.all if one.type.startswith("gcp:") and "service:Service" not in one.type]
    assert [one.name for one in others if one is not bucket and not made.waits_for(one, bucket)] == []


@pytest.mark.slow
def test_only_tokens_of_the_repository_may_act_as_an_account() -> None:
    """Only tokens of the repository with the right access may act as an account."""
    made = declarations_of()
    (provider,) = made.of("WorkloadIdentityPoolProvider")
    assert provider.inputs["attributeCondition"] == "assertion.repository_id == '4711'"
    assert provider.inputs["oidc"] == {"issuerUri": "https://token.actions.githubusercontent.com"}
    pool = f"principalSet://iam.googleapis.com/projects/{NUMBER}/locations/global/workloadIdentityPools/bezel"
    users = {
        (one.inputs["serviceAccountId"].rpartition("/")[2].partition("@")[0], one.inputs["member"])
        for one in made.of("serviceaccount/iAMMember:IAMMember")
    }
    assert users == {
        ("pipeline-preview", f"{pool}/attribute.access/preview"),
        ("pipeline-deploy", f"{pool}/attribute.access/deploy"),
    }


@pytest.mark.slow
def test_the_preview_account_writes_nothing_but_new_plans() -> None:
    made = declarations_of()
    roles = {role for member, role in grants(made) if member.startswith("serviceAccount:pipeline-preview@")}
    assert roles == {
        f"projects/{PROJECT}/roles/bezelPreview",
        f"projects/{PROJECT}/roles/bezelPreviewWeights",
        f"projects/{PROJECT}/roles/bezelPreviewStackSecrets",
        "roles/storage.objectViewer",
        "roles/storage.objectCreator",
        "roles/cloudkms.cryptoKeyDecrypter",
    }
    (creator,) = [one for one in made.all if one.inputs.get("role") == "roles/storage.objectCreator"]
    expression = f'resource.name.startsWith("projects/_/buckets/{BUCKET}/objects/plans/")'
    assert creator.inputs["condition"]["expression"] == expression
    reads = [p for role in made.of("IAMCustomRole") if "Preview" in role.name for p in role.inputs["permissions"]]
    verbs = {permission.rpartition(".")[2] for permission in reads}
    assert verbs == {"get", "list", "getIamPolicy", "getEffectiveFirewalls", "access"}
    assert [permission for permission in reads if permission.endswith(".access")] == ["secretmanager.versions.access"]
    (reader,) = [one for one in made.all if str(one.inputs.get("role")).endswith("/bezelPreviewStackSecrets")]
    assert reader.inputs["condition"]["expression"] == OF_STACKS


OF_STACKS = " || ".join(
    f'resource.name.startsWith("projects/{name}/secrets/bezel-stack-")' for name in (NUMBER, PROJECT)
)
GRANTABLE = {
    "bezelDeployProjectGrants": (
        "roles/logging.logWriter",
        "roles/monitoring.metricWriter",
        "roles/tpu.admin",
        "roles/compute.networkUser",
        "roles/compute.instanceAdmin.v1",
    ),
    "bezelDeployAccountGrants": ("roles/iam.serviceAccountUser",),
    "bezelDeployGrants": ("roles/run.invoker", "roles/run.developer", "roles/artifactregistry.reader"),
}


def only(*roles: str) -> str:
    listed = ", ".join(f"'{role}'" for role in roles)
    return f"api.getAttribute('iam.googleapis.com/modifiedGrantsByRole', []).hasOnly([{listed}])"


@pytest.mark.slow
def test_the_deploy_account_cannot_widen_its_own_rights() -> None:
    made = declarations_of(secrets=("hf-token",))
    deploys = {role.name: role.inputs["permissions"] for role in made.of("IAMCustomRole") if "Deploy" in role.name}
    limited = {name: deploys.pop(f"role-{name}") for name in GRANTABLE}
    assert "secretmanager.versions.access" in deploys.pop("role-bezelDeployStackSecrets")
    (secrets,) = [one for one in made.all if str(one.inputs.get("role")).endswith("/bezelDeployStackSecrets")]
    accessor = only("roles/secretmanager.secretAccessor")
    assert secrets.inputs["condition"]["expression"] == f"({OF_STACKS}) && ({accessor})"
    granted = {permission for permissions in deploys.values() for permission in permissions}
    assert not granted & {
        "iam.roles.update",
        "iam.serviceAccountKeys.create",
        "iam.serviceAccounts.getAccessToken",
        "iam.serviceAccounts.setIamPolicy",
        "iam.workloadIdentityPoolProviders.update",
        "resourcemanager.projects.setIamPolicy",
        "secretmanager.versions.access",
        "serviceusage.services.enable",
        "storage.objects.get",
    }
    assert not [permission for permission in granted if "*" in permission]
    assert {name for permissions in limited.values() for name in permissions if name.endswith(".setIamPolicy")} == {
        "artifactregistry.repositories.setIamPolicy",
        "iam.serviceAccounts.setIamPolicy",
        "resourcemanager.projects.setIamPolicy",
        "run.services.setIamPolicy",
    }
    # What sets a policy is granted under a condition on the roles, for each kind of resource its own.
    assert {name.rpartition(".")[0] for name in granted if name.endswith(".setIamPolicy")} == {
        "secretmanager.secrets",
        "storage.buckets",
    }
    for name, roles in GRANTABLE.items():
        (grant,) = [one for one in made.all if str(one.inputs.get("role")).endswith(f"/{name}")]
        assert grant.inputs["condition"]["expression"] == only(*roles)
        assert {permission.rpartition(".")[2] for permission in limited[name]} == {"getIamPolicy", "setIamPolicy"}
    for name, roles in {
        "bezelDeployWeights": ("roles/storage.objectViewer", "roles/storage.objectUser"),
        "bezelDeploySecrets": ("roles/secretmanager.secretAccessor",),
    }.items():
        (grant,) = [one for one in made.all if str(one.inputs.get("role")).endswith(f"/{name}")]
        assert grant.inputs["condition"]["expression"].endswith(f" && ({only(*roles)})")
    (writer,) = [one for one in made.all if one.inputs.get("role") == "roles/storage.objectUser"]
    assert "/objects/.pulumi/stacks/bezel-bootstrap/" in writer.inputs["condition"]["expression"]
    assert writer.inputs["condition"]["expression"].startswith("!(")


@pytest.mark.slow
@pytest.mark.parametrize("role", ["bezelDeployWeights", "bezelPreviewWeights", "bezelDeploySecrets"])
def test_roles_over_buckets_and_secrets_hold_for_the_named_ones_only(role: str) -> None:
    made = declarations_of(secrets=("hf-token",), weights_buckets=("acme-weights",))
    (grant,) = [one for one in made.all if str(one.inputs.get("role", "")).endswith(f"/{role}")]
    expression = grant.inputs["condition"]["expression"]
    assert ("secrets/hf-token" in expression) == (role == "bezelDeploySecrets")
    assert ("buckets/acme-weights" in expression) == (role != "bezelDeploySecrets")
    assert BUCKET not in expression


@pytest.mark.slow
def test_rights_over_secrets_and_addresses_need_their_names() -> None:
    names = [one.name for one in declarations_of().all]
    for part in ("DeploySecrets", "Addresses", "Records"):
        assert not [name for name in names if part in name]
    assert not {"apis-dns", "apis-certificatemanager"} & set(names)


@pytest.mark.slow
def test_records_are_set_for_the_named_domains_alone() -> None:
    made = declarations_of(domains=("llm.acme.example", "chat.acme.example"))
    (grant,) = [one for one in made.all if str(one.inputs.get("role", "")).endswith("/bezelDeployRecords")]
    (role,) = [one for one in made.of("IAMCustomRole") if one.name == "role-bezelDeployRecords"]
    assert grant.inputs["condition"]["expression"].split(" || ") == [
        'resource.type != "dns.googleapis.com/ResourceRecordSet"',
        *(
            f'resource.name.endsWith("/rrsets/{record}")'
            for domain in ("llm.acme.example", "chat.acme.example")
            for record in (f"{domain}./A", f"_acme-challenge.{domain}./CNAME")
        ),
    ]
    others = [one for one in made.of("IAMCustomRole") if one.name != role.name]
    assert set(role.inputs["permissions"]) == {
        f"dns.resourceRecordSets.{verb}" for verb in ("create", "delete", "update")
    }
    assert not [one.name for one in others if set(role.inputs["permissions"]) & set(one.inputs["permissions"])]


@pytest.mark.slow
@pytest.mark.parametrize("environment", ["dev", "prod"])
def test_the_policy_packs_let_all_of_it_pass_in_the_first_preview(environment: str) -> None:
    limits = example("hardware_cost", environment) | example("security", environment)
    made = declarations_of(preview=True)
    lines = [
        f"{resource.name}: {name}: {message}"
        for name, policy in POLICIES.items()
        if isinstance(policy, ResourceValidationPolicy) and policy.enforcement_level is not EnforcementLevel.REMEDIATE
        for resource in made.all
        for message in violations(name, resource.type, resource.inputs, limits.get(name, {}))
    ]
    assert lines == []


@pytest.mark.slow
def test_members_and_roles_are_known_in_the_first_preview() -> None:
    made = declarations_of(preview=True)
    assert [one.name for token in MEMBERS for one in made.of(token) if has_unknown(one.inputs.get("member"))] == []


@pytest.mark.parametrize("stack", [stack for stack in STACKS.stacks() if stack != "gce-l4x8"])
def test_every_api_that_a_stack_needs_is_enabled(stack: str) -> None:
    plan = make_plan(STACKS.configuration(stack), project=PROJECT, stack=stack)
    assert set(plan.apis) <= set(APIS)


@pytest.mark.slow
def test_what_an_earlier_life_left_is_adopted(project: FakeProject) -> None:
    ring = f"projects/{PROJECT}/locations/us-east4/keyRings/pulumi"
    project.resources = {ring: {"name": ring}, **remaining("DELETED")}
    made = declarations_of()
    assert made.one("keyRing:KeyRing").imported == ring
    assert made.one("WorkloadIdentityPool").imported == POOL
    assert made.one("WorkloadIdentityPoolProvider").imported == PROVIDER
    assert project.changes == [
        ("POST", f"{POOL}:undelete"),
        ("POST", f"{PROVIDER}:undelete"),
        ("PATCH", PROVIDER),
    ]


@pytest.mark.slow
def test_a_preview_restores_nothing(project: FakeProject) -> None:
    project.resources = remaining("DELETED")
    assert declarations_of(preview=True).one("WorkloadIdentityPool").imported == ""
    assert project.changes == []


@pytest.mark.slow
def test_a_pool_of_somebody_else_is_left_to_the_error_of_its_creation(project: FakeProject) -> None:
    project.resources = remaining("ACTIVE")
    project.resources[POOL]["description"] = "Our own pool"
    assert declarations_of().one("WorkloadIdentityPool").imported == ""
    project.resources[POOL]["description"] = "Jobs of the forge that deploy by pipeline (bezel-bootstrap)"
    assert declarations_of().one("WorkloadIdentityPool").imported == POOL
    assert project.changes == []


@pytest.mark.slow
def test_an_unknown_budget_and_channel_are_adopted_by_their_name(project: FakeProject) -> None:
    """A budget and a channel that no state knows are adopted by their name."""
    account = "billingAccounts/012345-6789AB-CDEF01"
    named = {"name": f"{account}/budgets/b1", "displayName": f"Pipelines of {PROJECT}"}
    project.resources = {
        f"{account}/budgets": {"budgets": [{"name": "x", "displayName": "Another"}, named]},
        f"v3/projects/{PROJECT}/notificationChannels": {"notificationChannels": [{"name": "x"}]},
    }
    made = declarations_of()
    assert made.one("budget:Budget").imported == f"{account}/budgets/b1"
    assert made.one("NotificationChannel").imported == ""


def test_a_hidden_project_and_a_silent_cloud_are_errors_with_a_repair(project: FakeProject) -> None:
    """A hidden project and a cloud that cannot be asked are errors with a repair."""
    project.hidden = True
    with pytest.raises(UserError, match=r"does not exist, or you may not see it[\s\S]*Repair: correct its ID"):
        declarations_of()
    project.hidden, project.refusal = False, 400
    with pytest.raises(UserError, match=r"nothing is declared[\s\S]*Repair: "):
        declarations_of()


def remaining(state: str) -> dict[str, dict[str, Any]]:
    description = "Jobs of the forge that deploy by pipeline (bezel-bootstrap)"
    return {POOL: {"state": state, "description": description}, PROVIDER: {"state": state}}
