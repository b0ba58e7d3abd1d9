"""What a workflow, a queue, a build or a script sends later is understood, or it is refused."""

from __future__ import annotations

import re
from typing import Any

import pytest

from bezel.resource_cost.inputs import camel
from bezel.resource_cost.later_requests import ELSEWHERE, SCRIPTS, SIGNED
from tests.support.policies.harness import DIGEST, LABELS, UNKNOWN, violations
from tests.support.policies.jobs import EMAIL, all_violations
from tests.support.standin_providers.schema import properties

WORKFLOW = "gcp:workflows/workflow:Workflow"
TRIGGER = "gcp:cloudbuild/trigger:Trigger"
JOB = "gcp:cloudrunv2/job:Job"
QUEUE = "gcp:cloudtasks/queue:Queue"
PIPELINE = "gcp:eventarc/pipeline:Pipeline"
CRON = "kubernetes:batch/v1:CronJob"
CLI = "gcr.io/google.com/cloudsdktool/google-cloud-cli:slim"


def source(text: str, name: str = "sourceContents") -> tuple[str, dict[str, Any]]:
    return WORKFLOW, {name: text}


def workflow(call: str, **args: str) -> tuple[str, dict[str, Any]]:
    lines = [f"        {name}: {value}" for name, value in args.items()]
    return source("\n".join(["main:", " steps:", "  - a:", f"      call: {call}", "      args:", *lines]))


def build(**step: object) -> tuple[str, dict[str, Any]]:
    return TRIGGER, {"build": {"steps": [{"name": "ubuntu", **step}]}}


def run_job(*args: str, image: str = DIGEST, commands: tuple[str, ...] = ()) -> tuple[str, dict[str, Any]]:
    container = {"image": image, "commands": list(commands), "args": list(args)}
    template = {"template": {"serviceAccount": EMAIL, "containers": [container]}}
    return JOB, {"labels": LABELS, "template": template}


def cron(**container: object) -> tuple[str, dict[str, Any]]:
    pod = {"spec": {"containers": [container]}}
    return CRON, {"spec": {"jobTemplate": {"spec": {"template": pod}}}}


SENT: dict[str, tuple[str, dict[str, Any]]] = {
    "a machine": workflow("googleapis.compute.v1.instances.insert", project="p"),
    "machines": workflow("googleapis.compute.v1.instances.bulkInsert", project="p"),
    "a service": workflow("googleapis.run.v2.projects.locations.services.create", parent="p"),
    "a policy": workflow("googleapis.run.v1.projects.locations.services.setIamPolicy", resource="r"),
    "a Batch job": workflow("googleapis.batch.v1.projects.locations.jobs.create", parent="p"),
    "a post": workflow("http.post", url="https://compute.googleapis.com/x", auth="{type: OAuth2}"),
    "a post without a token": workflow("http.post", url="https://compute.googleapis.com/x"),
    "any request": workflow("http.request", method="${m}", url="${u}", auth="{type: OAuth2}"),
    "any token": workflow("http.put", url="https://example.com", auth="${token}"),
    "any headers": workflow("http.put", url="https://example.com", headers="${headers}"),
    "an own token": workflow("http.put", url="${u}", headers="{Authorization: '${t}'}"),
    "no address": workflow("http.delete", auth="{type: OIDC}"),
    "another workflow": workflow("experimental.executions.run", workflow_id="w"),
    "JSON": source('{"main": {"steps": [{"a": {"call": "\\u0067oogleapis.tpu.v2.x.create"}}]}}'),
    "snake case": source("main: {steps: [{a: {call: googleapis.sqladmin.v1.instances.patch}}]}", "source_contents"),
    "no YAML": source("main: ["),
    "a merge": source("x: &x {url: u}\nmain: {steps: [{a: {call: http.post, args: {<<: *x}}}]}"),
    "too deep": source("main: " + "[" * 60_000),
    "too long": source("# " + "a" * 200_000),
    "a file": (TRIGGER, {"filename": "cloudbuild.yaml"}),
    "a build of gcloud": build(name="gcr.io/cloud-builders/gcloud", args=["compute", "instances", "create", "x"]),
    "a build by a script": build(script="apt-get update\ngcloud run deploy s --image=i"),
    "a build in a shell": build(entrypoint="bash", args=["-c", "cd x && terraform apply -auto-approve"]),
    "a build of Terraform": build(name="hashicorp/terraform:1.13", args=["apply"]),
    "a job of gcloud": run_job("run", "services", "update", "s", "--min-instances=4", image=CLI),
    "a job by a command": run_job("instances", "create", "x", commands=("gcloud", "compute")),
    "a job in a shell": run_job("gcloud compute instance-groups managed resize g --size 8", commands=("sh", "-c")),
    "a job after a read": run_job("gcloud compute instances list; gcloud compute instances start i"),
    "a job of a path": run_job("/usr/lib/google-cloud-sdk/bin/gcloud projects add-iam-policy-binding p --member=x"),
    "a job of curl": run_job("curl -X POST -d @b https://compute.googleapis.com/compute/v1/x", commands=("sh", "-c")),
    "a job of a library": run_job("-c", "from google.cloud import compute_v1", commands=("python",)),
    "an unknown verb": run_job("gcloud compute instances frobnicate x"),
    "a cron of Kubernetes": cron(image="google/cloud-sdk", command=["gcloud", "container", "clusters", "resize", "c"]),
    "kubectl": cron(image="bitnami/kubectl:1.33", args=["scale", "deployment/d", "--replicas=9"]),
    "a queue": (QUEUE, {"httpTarget": {"oauthToken": {"serviceAccountEmail": EMAIL}}}),
    "a queue in snake case": (QUEUE, {"http_target": {"oauth_token": {"service_account_email": EMAIL}}}),
    "a pipeline": (
        PIPELINE,
        {"destinations": [{"authenticationConfig": {"oauthToken": {"serviceAccount": EMAIL}}}]},
    ),
    "a webhook": ("gcp:diagflow/cxWebhook:CxWebhook", {"genericWebService": {"serviceAgentAuth": "ACCESS_TOKEN"}}),
    "Infrastructure Manager": (
        "gcp:configdeployment/deployment:Deployment",
        {"terraformBlueprint": {"gcsSource": "gs://p/x.zip"}},
    ),
    "Deployment Manager": (
        "gcp:deploymentmanager/deployment:Deployment",
        {"target": {"config": {"content": "resources: []"}}},
    ),
    "a command of the deploy": ("command:local:Command", {"create": "gcloud compute instances create x"}),
    "a policy of machines": (
        "gcp:osconfig/osPolicyAssignment:OsPolicyAssignment",
        {"osPolicies": [{"resourceGroups": [{"resources": [{"exec": {"enforce": {"script": "gcloud run deploy"}}}]}]}]},
    ),
}
UNKNOWN_ONES: dict[str, tuple[str, dict[str, Any]]] = {
    "a workflow": source(UNKNOWN),
    "a build": (TRIGGER, {"build": UNKNOWN}),
    "a word of a build": build(args=["-c", UNKNOWN]),
    "a word of a tool": run_job("compute", "instances", "create", UNKNOWN, image=CLI),
}
READS: dict[str, tuple[str, dict[str, Any]]] = {
    "a read": workflow("googleapis.compute.v1.instances.get", project="p"),
    "a list": workflow("googleapis.run.v2.projects.locations.services.list", parent="p"),
    "a stop": workflow("googleapis.compute.v1.instances.stop", project="p"),
    "a get": workflow("http.get", url="https://compute.googleapis.com/compute/v1/x", auth="{type: OAuth2}"),
    "another server": workflow("http.post", url="https://example.com/hook"),
    "the own service": workflow("http.post", url="${service_url}", auth="{type: OIDC}"),
    "no call": source("main: {steps: [{a: {return: 1}}]}"),
    "the log": workflow("sys.log", text="googleapis.compute.v1.instances.insert"),
    "a build of an image": build(name="gcr.io/cloud-builders/docker", args=["build", "-t", "i", "."]),
    "a look": run_job("gcloud compute instances list --format json", commands=("sh", "-c")),
    "a copy": run_job("storage", "cp", "gs://a/b", ".", image=CLI),
    "a download": run_job("curl -fsS https://storage.googleapis.com/a/b -o c", commands=("sh", "-c")),
    "a plan": run_job("plan", image="hashicorp/terraform:1.13"),
    "a server": run_job("serve", "--port", "8080"),
    "a time limit": ("gcp:storage/bucket:Bucket", {"name": "b", "customTimeouts": {"create": "10m"}, "labels": LABELS}),
    "a queue": (QUEUE, {"name": "q", "rateLimits": {"maxConcurrentDispatches": 3.0}}),
    "a queue with an identity": (QUEUE, {"httpTarget": {"oidcToken": {"serviceAccountEmail": EMAIL}}}),
    "a push": (
        "gcp:pubsub/subscription:Subscription",
        {"pushConfig": {"pushEndpoint": UNKNOWN, "oidcToken": {"serviceAccountEmail": EMAIL}}},
    ),
}


@pytest.mark.parametrize("case", SENT)
def test_what_a_resource_sends_later_is_refused_unless_it_only_reads(case: str) -> None:
    token, inputs = SENT[case]
    if token == JOB:
        inputs = {**inputs, "labels": LABELS}
    for policy in ("hourly-ceiling", "allowed-accelerators", "known-requests"):
        assert violations(policy, token, {**inputs, "labels": LABELS}), policy


@pytest.mark.parametrize("case", UNKNOWN_ONES)
def test_what_a_preview_cannot_know_is_refused(case: str) -> None:
    (message,) = violations("known-requests", *UNKNOWN_ONES[case])
    assert "(not known before the deploy)" in message


@pytest.mark.parametrize("case", READS)
def test_what_only_reads_passes(case: str) -> None:
    token, inputs = READS[case]
    said = all_violations(token, inputs)
    assert said.keys() <= {"image-by-digest"}  # the images above have tags


# Inputs of the installed provider that may hold a request or a command, and why a policy need not read them.
FIELD = re.compile(
    r"(^|_)(script|scripts|bash_scripts|command|commands|args|entrypoint|oauth_token|blueprint|source_contents|http_method)$"
    r"|^(terraform_blueprint|service_account_auth_configs?|service_agent_auth)$"
)
NOT_READ = {
    "a file in a bucket": r"container\..*\.init_script",
    "a query of data": r"dataplex\.TaskSpark\.sql_script",
    "options of a server": r"gkeonprem\..*\.api_server_args",
    "the build of an image": r"vertex\..*\.build_args",
}


@pytest.mark.slow
def test_every_input_that_may_hold_a_request_is_read_or_named() -> None:
    fields = [each for each in properties() if FIELD.search(each.name)]
    named = re.compile("|".join(NOT_READ.values()))
    read = {*SCRIPTS, *SIGNED, *ELSEWHERE.values(), "sourceContents", "httpMethod", "serviceAgentAuth"}
    left = [str(each) for each in fields if camel(each.name) not in read and not named.match(str(each))]
    assert left == []
    assert len(fields) > 100
    for reason, pattern in NOT_READ.items():
        assert any(re.match(pattern, str(each)) for each in fields), reason
