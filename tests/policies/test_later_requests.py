"""What a workflow, a queue, a build or a script sends later is understood, or it is refused."""

from __future__ import annotations

import re
from typing import Any

import pytest

from bezel.resource_cost.inputs import camel
from bezel.resource_cost.requests.commands import unread_command
from bezel.resource_cost.requests.later import ELSEWHERE, SCRIPTS, SIGNED
from bezel_components.config.startup_script import KINDS, startup_script
from bezel_components.config.startup_script import SCRIPT as STARTUP
from pulumi_offline_support.schema import properties
from tests.support.policies.harness import DIGEST, INSTANCE, LABELS, LEASE, UNKNOWN, instance, violations
from tests.support.policies.jobs import EMAIL, all_violations

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
    "a command of a destroy": ("command:local:Command", {"create": "echo hi", "delete": "gcloud run deploy s"}),
    "a query of data": workflow("googleapis.bigquery.v2.jobs.query", projectId="p"),
    "a get that posts": workflow(
        "http.get", url="https://run.googleapis.com/x", headers="{X-HTTP-Method-Override: POST}", auth="{type: OAuth2}"
    ),
    "a build of gke-deploy": build(name="gcr.io/cloud-builders/gke-deploy", args=["run", "-f", "x"]),
    "a policy of machines": (
        "gcp:osconfig/osPolicyAssignment:OsPolicyAssignment",
        {"osPolicies": [{"resourceGroups": [{"resources": [{"exec": {"enforce": {"script": "gcloud run deploy"}}}]}]}]},
    ),
}
MACHINE = "https://compute.googleapis.com/compute/v1/projects/p/zones/z/instances"
CREATE = "gcloud compute instances create x --machine-type=a3-highgpu-8g"
DOES_MORE = [
    # the value of an option before the verb
    "gcloud --project list compute instances start x", "gcloud --configuration get compute instances bulk create x",
    "kubectl -n list scale --replicas=5 x", "kubectl -n get patch x", "pulumi -s list up --yes",
    "terraform -chdir plan apply", "helm --namespace diff upgrade", "gcloud --project list compute x frobnicate",
    "gcloud compute instances \\\n  create x",
    # verbs that open or raise
    "gcloud compute firewall-rules delete x", "gcloud org-policies delete x", "gcloud billing budgets delete x",
    "gcloud projects delete p", "kubectl delete networkpolicy x", "kubectl delete resourcequota/x",
    "gcloud storage cp --predefined-acl=publicRead a gs://b", "gsutil cp -a public-read a gs://b",
    "gsutil -m rsync -ra public-read a gs://b", "gsutil -h x-goog-acl:public-read cp a gs://b",
    'gcloud compute ssh x --command="gcloud run deploy"', "gcloud compute ssh x -- reboot", "gke-deploy run -f x",
    # requests
    f"curl -sXPOST {MACHINE}", f"curl -sSfXPOST {MACHINE}", f"curl -sd '{{}}' {MACHINE}", f"curl -vd @b {MACHINE}",
    f"curl -Fa=b {MACHINE}", f"curl --form a=b {MACHINE}", f"curl -K x {MACHINE}", f"curl --config x {MACHINE}",
    "curl --connect-to ::compute.googleapis.com:443 https://example.com", "curl -d x run.googleapis.com/v2/x",
    "H=compute.googleapis.com; curl -X POST https://$H/x", 'U="https://run.googleapis.com"; curl -XPATCH "$U/v2/x"',
    "curl -X POST https://$H/x", f"http POST {MACHINE}", f"http {MACHINE} name=x", f"wget --post-data=x {MACHINE}",
    f"curl -H 'X-HTTP-Method-Override: POST' {MACHINE}", f"retry 3 curl -T b {MACHINE}",
    f'curl -H "Authorization: Bearer $(gcloud auth print-access-token)" -X POST {MACHINE}',
    f"python -c 'from urllib.request import *; urlopen(Request(\"{MACHINE}\", data=b\"{{}}\"))'",
    # hidden commands
    "echo Z2Nsb3Vk | base64 -d | sh", 'eval "$(echo Z2Nsb3Vk | base64 -d)"', "G=gcloud; $G compute instances create x",
    'G="gcloud compute"; ${G} instances create x', 'g""cloud run deploy s', "g'c'loud run deploy s", "$CMD", "$CMD x y",
    "g\\cloud run deploy s", "gcl$()oud run deploy s",
    "bash -lc $CMD", "$(echo gcloud) run deploy s", "python3 /usr/lib/gcloud.py run deploy s", "import vertexai",
    "go run cloud.google.com/go/compute", "echo gcloud run deploy s | sh", "echo run deploy s | xargs gcloud",
    "echo gcloud run deploy s > a; sh a", f"retry 3 {CREATE}", f"sudo {CREATE}", f"if true; then {CREATE}; fi",
]  # fmt: skip
ONLY_READS = [
    'echo "install terraform first"', 'sh -c \'echo "install terraform first" >&2\'', "apt-get install -y kubectl",
    "which gcloud", "command -v gcloud", "serve --backend gcloud --port 1", "cd terraform; ls", "x # needs gcloud here",
    "gcloud --quiet compute instances list", "gcloud --project p run jobs list", "gcloud compute instances \\\n list",
    "gcloud compute ssh x", "gcloud compute instances delete x --quiet", "gcloud run jobs delete x",
    "gcloud compute tpus queued-resources delete x", "gcloud secrets versions access latest --secret=x",
    "gsutil -m -q rsync -r gs://a b", "gsutil ls -a gs://b", "gcloud storage cp a gs://b", "kubectl -n list get pods",
    "kubectl get deploy", "kubectl delete pod x", "terraform -chdir=x plan", "terraform -no-color plan",
    "pulumi -s dev preview", f"curl -X GET {MACHINE}", "curl -fsSLo x https://storage.googleapis.com/a/b",
    f'curl -H "Authorization: Bearer $(gcloud auth print-access-token)" {MACHINE}', "wget -qO- storage.googleapis.com",
    "H=storage.googleapis.com; curl https://$H/x", "curl -X POST https://example.com/hook -d x", "curl -d x $WEBHOOK",
    "pip install -f https://storage.googleapis.com/jax-releases/libtpu_releases.html jax",
    "python train.py --data https://storage.googleapis.com/x/y", "serve https://www.googleapis.com/auth/cloud-platform",
    "export U=https://aiplatform.googleapis.com; serve", "$HOME/bin/serve x", "base64 -d x > y",
    "exec haproxy -f /dev/stdin <<END\n${C}\nEND\n",
    "if [[ $x == y ]]; then serve; fi", "https_proxy=x curl example.com",
]  # fmt: skip
PROJECT = "gcp:compute/projectMetadata:ProjectMetadata"
ITEM = "gcp:compute/projectMetadataItem:ProjectMetadataItem"
DECLARED = "spec:\n  containers:\n  - image: google/cloud-sdk\n    command: [gcloud]\n    args: [run, deploy, s]\n"


def boot(script: object, key: str = "startup-script") -> dict[str, tuple[str, dict[str, Any]]]:
    """Resources whose metadata hold a script: of a machine, a template, a project, an item of it, and a lease."""
    e2 = {"machineType": "e2-small", "labels": LABELS, "metadata": {key: script}}
    listed = {"items": [{"key": key, "value": script}]}
    node = {"acceleratorType": "v6e-4", "metadata": {key: script}}
    return {
        "a machine": (INSTANCE, e2),
        "a leased machine": (INSTANCE, instance({f"metadata.{key}": script})),
        "a template": ("gcp:compute/instanceTemplate:InstanceTemplate", e2),
        "a project": (PROJECT, {"metadata": {key: script}}),
        "an item of a project": (ITEM, {"key": key, "value": script}),
        "a list of items": (INSTANCE, {**e2, "metadata": listed}),
        "a lease": (LEASE, {"tpu": {"nodeSpec": [{"node": node}]}}),
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
    "a get with a header": workflow("http.get", url="https://run.googleapis.com/x", headers="{Accept: text/plain}"),
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


@pytest.mark.parametrize("command", DOES_MORE)
def test_a_command_that_does_more_than_read_is_refused(command: str) -> None:
    assert unread_command(command)


@pytest.mark.parametrize("command", ONLY_READS)
def test_a_command_that_only_reads_passes(command: str) -> None:
    assert unread_command(command) is None


@pytest.mark.parametrize("resource", boot(""))
@pytest.mark.parametrize("script", [CREATE, f"#!/bin/bash\ncurl -X POST {MACHINE}\n"])
def test_a_startup_script_that_does_more_than_read_is_refused(resource: str, script: str) -> None:
    assert violations("known-requests", *boot(script)[resource])


@pytest.mark.slow
@pytest.mark.parametrize("resource", boot(""))
def test_the_shipped_startup_script_is_understood(resource: str) -> None:
    for script in (STARTUP.read_text(), startup_script(frozenset(KINDS)), "#!/bin/sh\ngcloud storage cp gs://a b"):
        assert violations("known-requests", *boot(script)[resource]) == []


@pytest.mark.parametrize(
    ("key", "script"),
    [
        ("shutdown-script", CREATE), ("user-data", f"#cloud-config\nruncmd:\n- {CREATE}\n"),
        ("windows-startup-script-ps1", CREATE), ("windows-shutdown-script-cmd", CREATE),
        ("sysprep-specialize-script-ps1", CREATE), ("gce-container-declaration", DECLARED),
    ],
)  # fmt: skip
def test_each_metadata_key_that_a_machine_runs_is_judged(key: str, script: str) -> None:
    assert violations("known-requests", *boot(script, key)["a machine"])
    assert violations("known-requests", *boot(script, f"about-{key}")["a machine"]) == []


@pytest.mark.parametrize("case", UNKNOWN_ONES)
def test_what_a_preview_cannot_know_is_refused(case: str) -> None:
    (message,) = violations("known-requests", *UNKNOWN_ONES[case])
    assert "(not known before the deploy)" in message


@pytest.mark.parametrize("case", READS)
def test_what_only_reads_passes(case: str) -> None:
    token, inputs = READS[case]
    problems = all_violations(token, inputs)
    assert problems.keys() <= {"image-by-digest"}  # the images above have tags


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
