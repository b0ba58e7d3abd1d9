"""The pipeline's two accounts as `bezel init` makes them: with their roles a stack lives, without any a step fails.

Every step is one of a workflow's job: it has the job's own identity, and neither a key nor a token of the owner.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from tests.support.bootstrap.grants import Grant, Policies, email_of
from tests.support.bootstrap.jobs import DEPLOYS, MERGE, NIGHT, PREVIEWS, PULL_REQUEST, Jobs, callers
from tests.support.bootstrap.setup_harness import BUCKET
from tests.support.e2e.rehearsal import add_version, make_secret

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.e2e.rehearsal import Run

pytestmark = [pytest.mark.slow, pytest.mark.long]
SERVICE, LEASE = "l4-qat", "v6e1-12b"
# Of one day of each year, in a hundred days: the lease of a deploy is there for its checks.
DAY = datetime.now(UTC) + timedelta(days=100)
HOURS = [{verb: f"0 {hour} {DAY.day} {DAY.month} *" for verb, hour in (("start", 8), ("end", 12))}]
DESTROY = ("pulumi", "destroy", "--yes", "--skip-preview")
POOL = "principal://iam.googleapis.com/projects/123456789012/locations/global/workloadIdentityPools/bezel/"


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[Jobs]:
    with Jobs.running(tmp_path) as made:
        yield made


@pytest.mark.parametrize("stack", [SERVICE, LEASE])
def test_a_pipeline_lives_with_the_roles_of_its_set_up(jobs: Jobs, stack: str) -> None:
    text_of_success(jobs.init())
    again = jobs.init()
    assert (again.code, "0 changes" in again.text) == (0, True), again.text
    jobs.seed(stack)
    watch(jobs)
    before = len(jobs.requests())

    with jobs.job(PREVIEWS, PULL_REQUEST) as job:
        text_of_success(job.login())
        assert "saved for the deploy" in text_of_success(job.bezel("ci", "preview", stack))
        refused = job.bezel("ci", "deploy", stack, "--wait", "0s")
        assert (refused.code, "these credentials may not create it" in refused.text) == (1, True), refused.text
    with jobs.job(DEPLOYS, PULL_REQUEST) as job:
        denied = job.login()
        assert (denied.code, "iam.serviceAccounts.getAccessToken" in denied.text) == (1, True), denied.text
    with jobs.job(DEPLOYS, MERGE) as job:
        text_of_success(job.login())
        deployed = text_of_success(job.bezel("ci", "deploy", stack))
        assert "smoke: passed" in deployed
    with jobs.job(PREVIEWS, NIGHT) as job:
        text_of_success(job.login())
        assert f"{stack}: no drift" in text_of_success(job.bezel("ci", "drift", "--all"))
    with jobs.job(DEPLOYS, NIGHT | {"environment": "dev"}) as job:
        text_of_success(job.login())
        text_of_success(job.bezel("ci", "lock", stack, "--", *DESTROY, "--remove", "--stack", stack))

    requests = jobs.requests(before)
    # A leased machine is an account of its stack.
    sent = {name.partition("subject/")[0] for name in callers(requests) if not name.startswith(f"bezel-{stack}@")}
    assert sent == {POOL, email_of("preview"), email_of("deploy")}
    denied_to = {(line["caller"], name) for line in requests for name in line["denied"]}
    assert {name for caller, name in denied_to if caller == email_of("deploy")} == set()
    assert {name for caller, name in denied_to if caller == email_of("preview")} == {"storage.objects.create"}
    text_of_success(jobs.setup.destroy())


# Grant -> the step that needs it, and the permission that is missing first.
NEEDED = {
    Grant("preview", "account", "iam.workloadIdentityUser"): ("login", "iam.serviceAccounts.getAccessToken"),
    Grant("preview", "bucket", "storage.objectViewer"): ("preview", "storage.objects.list"),
    Grant("preview", "bucket", "storage.objectCreator"): ("save", "storage.objects.create"),
    Grant("preview", "project", "bezelPreview"): ("preview", "run.services.get"),
    Grant("preview", "project", "bezelPreviewWeights"): ("drift", "storage.buckets.getIamPolicy"),
    Grant("preview", "project", "bezelPreviewStackSecrets"): ("drift", "secretmanager.secrets.get"),
    Grant("preview", "key", "cloudkms.cryptoKeyDecrypter"): ("decrypt", "cloudkms.cryptoKeyVersions.useToDecrypt"),
    Grant("deploy", "account", "iam.workloadIdentityUser"): ("login", "iam.serviceAccounts.getAccessToken"),
    Grant("deploy", "bucket", "storage.objectUser"): ("lock", "storage.objects.get"),
    Grant("deploy", "project", "bezelDeploy"): ("deploy", "run.services.get"),
    # Of two resources that begin together, one is refused first.
    Grant("deploy", "project", "bezelDeployWeights"): ("deploy", "storage."),
    Grant("deploy", "project", "bezelDeploySecrets"): ("deploy", "secretmanager.secrets.getIamPolicy"),
    Grant("deploy", "project", "bezelDeployStackSecrets"): ("deploy", "secretmanager.secrets.get"),
    Grant("deploy", "project", "bezelDeployLeases"): ("deploy", "compute.networks.create"),
    Grant("deploy", "project", "bezelDeployProjectGrants"): ("deploy", "resourcemanager.projects.getIamPolicy"),
    Grant("deploy", "project", "bezelDeployAccountGrants"): ("deploy", "iam.serviceAccounts.setIamPolicy"),
    Grant("deploy", "project", "bezelDeployGrants"): ("deploy", "artifactregistry.repositories."),
    Grant("deploy", "key", "cloudkms.cryptoKeyEncrypterDecrypter"): (
        "encrypt",
        "cloudkms.cryptoKeyVersions.useToEncry",
    ),
}


def test_without_one_grant_the_step_that_needs_it_is_refused(jobs: Jobs) -> None:
    text_of_success(jobs.init("--secret", "hf-token"))
    jobs.seed(SERVICE, LEASE)
    watch(jobs)
    make_secret(jobs.pipeline.cloud.http, "hf-token")
    add_version(jobs.pipeline.cloud.http, "hf-token", "not a token")
    policies = Policies(jobs.pipeline.cloud.http, BUCKET, jobs.key())
    assert policies.grants() == {*NEEDED}

    # In this order: the deploy finds the checkout as the drift run leaves it.
    late = (
        Grant("preview", "project", "bezelPreviewWeights"),
        Grant("deploy", "project", "bezelDeploySecrets"),
        Grant("deploy", "project", "bezelDeployStackSecrets"),
    )
    last = Grant("preview", "project", "bezelPreviewStackSecrets")
    first = [grant for grant in NEEDED if grant not in (*late, last)]
    for grant in first:
        if grant.account == "preview":
            check_refusal(jobs, policies, grant)
    preview(jobs, LEASE)
    for grant in first:
        if grant.account == "deploy":
            # What a refused deploy has created is in the state, so the rest of it needs a preview of its own.
            preview(jobs, SERVICE)
            check_refusal(jobs, policies, grant)
            if stack_of(grant) == LEASE:  # else the next deploy may find the grants made that it is to be refused
                with jobs.job(DEPLOYS, MERGE) as job:
                    text_of_success(job.login())
                    text_of_success(job.bezel("ci", "lock", LEASE, "--", *DESTROY, "--stack", LEASE))
                jobs.pipeline.git("checkout", "--", ".")  # Pulumi has written to the stack's file
    preview(jobs, SERVICE)
    text_of_success(run_step(jobs, DEPLOYS, MERGE, "ci", "deploy", SERVICE))
    # Of a stack that is deployed: the policies of its buckets are read, and a secret is shared.
    jobs.pipeline.set("bezel:secrets", {"HF_TOKEN": "hf-token"}, SERVICE)
    jobs.pipeline.set("bezel:observability", {"metrics": True}, SERVICE)
    jobs.pipeline.commit()
    for grant in late:
        preview(jobs, SERVICE)
        check_refusal(jobs, policies, grant)
        jobs.pipeline.git("checkout", "--", ".")
    preview(jobs, SERVICE)
    text_of_success(run_step(jobs, DEPLOYS, MERGE, "ci", "deploy", SERVICE))
    check_refusal(jobs, policies, last)

    key = jobs.key()
    for account, verb in ((PREVIEWS, "decrypt"), (DEPLOYS, "encrypt"), (DEPLOYS, "decrypt")):
        text_of_success(jobs.crypt(verb, key, account))
    assert jobs.crypt("encrypt", key, PREVIEWS).code == 403


def watch(jobs: Jobs) -> None:
    """Let both stacks have alerts, and the lease hours, whose jobs and grants need the most rights."""
    for stack in (SERVICE, LEASE):
        jobs.pipeline.set("bezel:observability", {"alerts": True, "dashboard": True}, stack)
    jobs.pipeline.set("bezel:cost", {"max_hourly_usd": 2}, SERVICE)  # a collector has its price
    jobs.pipeline.set("bezel:lease", {"zones": [{"zone": "us-east5-a"}], "duration": "4h", "hours": HOURS}, LEASE)
    jobs.pipeline.commit()


def preview(jobs: Jobs, stack: str) -> None:
    """Preview a stack as a pull request does."""
    text_of_success(run_step(jobs, PREVIEWS, PULL_REQUEST, "ci", "preview", stack))


def run_step(jobs: Jobs, account: str, claims: dict[str, str], *arguments: str) -> Run:
    """A job's login and one step."""
    with jobs.job(account, claims) as job:
        run = job.login()
        return run if run.code or not arguments else job.bezel(*arguments)


def stack_of(grant: Grant) -> str:
    """The stack whose deploy needs a grant."""
    return LEASE if "Leases" in grant.role or "Grants" in grant.role else SERVICE


def check_refusal(jobs: Jobs, policies: Policies, grant: Grant) -> None:
    """Take a grant away, and see its step refused with the permission and the role."""
    step, permission = NEEDED[grant]
    account, claims = (PREVIEWS, PULL_REQUEST) if grant.account == "preview" else (DEPLOYS, MERGE)
    stack = stack_of(grant)
    commands = {
        "login": (),
        "drift": ("ci", "drift", stack),
        "lock": ("ci", "deploy", stack),
        "save": ("ci", "preview", stack),
    }.get(step, ("ci", step, stack))
    with policies.without(grant):
        crypt = step in ("encrypt", "decrypt")
        run = jobs.crypt(step, policies.key, account) if crypt else run_step(jobs, account, claims, *commands)
    assert run.code != 0, f"{grant}\n{run.text}"
    assert permission in run.text, f"{grant}\n{run.text}"
    if grant.place == "project":
        assert f"the role {grant.role} holds it" in run.text, f"{grant}\n{run.text}"
    elif grant.place == "bucket":
        assert "Repair: grant the account roles/storage.object" in run.text, f"{grant}\n{run.text}"


def text_of_success(run: Run) -> str:
    """What a command printed that ended well."""
    assert run.code == 0, run.text
    return run.text
