"""A stack with one of everything that costs money or opens access, on a localcloud in this process, and its state.

Each resource is made over Google's API, and stands in the state as the engine writes it. What somebody does by hand is
a request to the same API.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bezel.leases.clock import PlatformClock
from bezel.leases.requests import ZoneChoice, instance_body, instance_in_zone, queued_body, queued_in_zone
from bezel.operations.context import Context
from bezel.rest.endpoints import _GOOGLE
from localcloud_support.in_process import COMPUTE, PARENT, Project
from tests.support.operations.deployed import state_of
from tests.support.rest.fake_google import ACCESS_TOKEN, Answer, Call, serving

P = PARENT.partition("/")[2]
REGION = f"{PARENT}/locations/us-east4"
SERVICE, RUN = f"{REGION}/services/llm", "/run/v2"
RUNNER, SCALER = (f"{name}@{P}.iam.gserviceaccount.com" for name in ("runner", "scaler"))
JOBS = f"/cloudscheduler/v1/{REGION}/jobs"
NETWORK, SUBNETWORK = f"{PARENT}/global/networks/net", f"{PARENT}/regions/us-east5/subnetworks/net-us-east5"
VM = f"{COMPUTE}/zones/us-east5-a/instances/vm"
NODE = f"/tpu/v2alpha1/{PARENT}/locations/us-east5-a/nodes/tpu"
_APIS = (
    "iam", "iamcredentials", "secretmanager", "cloudscheduler", "artifactregistry", "compute", "run", "storage",
    "cloudresourcemanager", "monitoring", "tpu",
)  # fmt: skip
_PREFIX = {
    "ARTIFACT_REGISTRY": "artifactregistry/v1", "CLOUD_RUN_V2": "run/v2", "CLOUD_SCHEDULER": "cloudscheduler/v1",
    "COMPUTE": "compute/v1", "IAM_BETA": "iam/v1", "MONITORING": "monitoring", "RESOURCE_MANAGER": "crm/v1",
    "SECRET_MANAGER": "secretmanager/v1", "STORAGE": "storage/v1", "TPU_V2ALPHA1": "tpu/v2alpha1",
}  # fmt: skip
LIMITS = {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1"}
CONTAINER = {"image": "us-docker.pkg.dev/cloudrun/container/hello@sha256:0", "resources": {"limits": LIMITS}}
_MACHINE: dict[str, Any] = {"labels": {}, "metadata": {"startup-script": "#!/bin/sh"}, "service_account": RUNNER}


class OwnedStack:
    """The stack `dev`, its cloud, and the engine's state of it.

    Attributes:
        refused: Parts of paths that the caller may not read.
        asked: Paths that were asked for.
    """

    def __init__(self, project: Project, folder: Path, environ: dict[str, str]) -> None:
        self.project, self.folder, self.environ = project, folder, environ
        self.refused: set[str] = set()
        self.asked: list[str] = []
        self.resources: list[dict[str, Any]] = []
        self._one = threading.Lock()

    def context(self) -> Context:
        """A new context, as a face makes one for each call."""
        clock = PlatformClock(now=self.project.clock.now)
        return Context(self.folder, self.environ, clock=clock, show=lambda _line: None)

    def answer(self, call: Call) -> Answer:
        """Answer as localcloud does."""
        self.asked.append(call.path)
        for part in self.refused:
            if part in call.path:
                error = {"code": 403, "message": f"Permission denied on {part}", "status": "PERMISSION_DENIED"}
                return Answer(403, {"error": error})
        with self._one:  # the store is that of one thread
            response = self.project.call(call.method, call.path, call.json if call.body else None, **call.query)
        return Answer(response.status_code, text=response.text)

    def keep(self, stack: str = "dev", resources: list[dict[str, Any]] | None = None) -> None:
        """Write the state of a stack."""
        file = self.folder / "state/.pulumi/stacks/bezel" / f"{stack}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(state_of(*(self.resources if resources is None else resources))))

    def declare(self, type_: str, id_: str, outputs: dict[str, Any] | None = None, **inputs: Any) -> None:
        """Add a resource to the state."""
        self.resources.append(resource(type_, id_, inputs, outputs))

    def grant(self, get: tuple[str, str], put: tuple[str, str], role: str, member: str, wrap: bool = True) -> None:
        """Add a member to a policy, as somebody does by hand."""
        body = {} if get[0] == "POST" else None
        policy = self.project.ok(get[0], get[1], body)
        bindings = [*policy.get("bindings", []), {"role": role, "members": [member]}]
        new = {"bindings": bindings, "etag": policy["etag"]}
        self.project.ok(put[0], put[1], {"policy": new} if wrap else new)

    def make(self) -> None:
        """Make everything, and note it."""
        ok = self.project.ok
        for name in _APIS:
            self.project.cloud.store.put("api", f"{name}.googleapis.com", {"state": "ENABLED"})
        for email in (RUNNER, SCALER):
            ok("POST", f"/iam/v1/{PARENT}/serviceAccounts", {"accountId": email.partition("@")[0]})
            self.declare("gcp:serviceaccount/account:Account", f"{PARENT}/serviceAccounts/{email}", {"email": email},
                         accountId=email.partition("@")[0], project=P)  # fmt: skip
        self._service()
        self._storage()
        self._leases()
        self.keep()

    def _service(self) -> None:
        template = {
            "serviceAccount": RUNNER,
            "containers": [CONTAINER],
            "nodeSelector": {"accelerator": "nvidia-l4"},
            "gpuZonalRedundancyDisabled": True,
            "scaling": {"maxInstanceCount": 1},
        }
        self.project.ok("POST", f"{RUN}/{REGION}/services", {"template": template}, serviceId="llm")
        inputs = {"project": P, "location": "us-east4", "name": "llm", "ingress": "INGRESS_TRAFFIC_ALL"}
        declared = {**template, "containers": [{**CONTAINER, "resources": {"limits": LIMITS, "cpuIdle": False}}]}
        targets = [{"type": "TRAFFIC_TARGET_ALLOCATION_TYPE_LATEST", "percent": 100}]
        self.declare("gcp:cloudrunv2/service:Service", SERVICE, template=declared, traffics=targets, **inputs)
        # The schedule: its account changes the service, and the job sets a minimum of one.
        policy = f"{RUN}/{SERVICE}"
        role, member = "roles/run.developer", f"serviceAccount:{SCALER}"
        self.grant(("GET", f"{policy}:getIamPolicy"), ("POST", f"{policy}:setIamPolicy"), role, member)
        self.declare("gcp:cloudrunv2/serviceIamMember:ServiceIamMember", f"{SERVICE}/{role}/{member}",
                     role=role, member=member, **inputs)  # fmt: skip
        self.declare("pulumi-python:dynamic/components:ScheduledMinimum", f"{SERVICE}/minimum", service=SERVICE,
                     entries=[["0 8 * * *", "UTC", 1], ["0 18 * * *", "UTC", 0]])  # fmt: skip
        job = {
            "name": f"{REGION}/jobs/llm-scaling-0", "schedule": "0 8 * * *", "timeZone": "UTC",
            "httpTarget": {"uri": f"https://run.googleapis.com/v2/{SERVICE}?updateMask=scaling.minInstanceCount",
                           "httpMethod": "PATCH", "oauthToken": {"serviceAccountEmail": SCALER}},
        }  # fmt: skip
        self.project.ok("POST", JOBS, job)
        self.declare("gcp:cloudscheduler/job:Job", job["name"], project=P, region="us-east4", name="llm-scaling-0")

    def _storage(self) -> None:
        ok = self.project.ok
        access = {"uniformBucketLevelAccess": {"enabled": True}, "publicAccessPrevention": "enforced"}
        ok("POST", "/storage/v1/b", {"name": "own-models", "iamConfiguration": access}, project=P)
        self.declare("gcp:storage/bucket:Bucket", "own-models", name="own-models", project=P,
                     uniformBucketLevelAccess=True, publicAccessPrevention="enforced")  # fmt: skip
        ok("POST", "/storage/v1/b", {"name": "shared-models"}, project=P)
        role, member = "roles/storage.objectViewer", f"serviceAccount:{RUNNER}"
        for bucket in ("own-models", "shared-models"):
            self.grant(("GET", f"/storage/v1/b/{bucket}/iam"), ("PUT", f"/storage/v1/b/{bucket}/iam"), role, member,
                       wrap=False)  # fmt: skip
            self.declare("gcp:storage/bucketIAMMember:BucketIAMMember", f"b/{bucket}/{role}/{member}",
                         bucket=bucket, role=role, member=member)  # fmt: skip
        secrets = f"/secretmanager/v1/{PARENT}/secrets"
        ok("POST", secrets, {"replication": {"automatic": {}}}, secretId="hf")
        role = "roles/secretmanager.secretAccessor"
        self.grant(("GET", f"{secrets}/hf:getIamPolicy"), ("POST", f"{secrets}/hf:setIamPolicy"), role, member)
        self.declare("gcp:secretmanager/secretIamMember:SecretIamMember", f"{PARENT}/secrets/hf/{role}/{member}",
                     project=P, secretId="hf", role=role, member=member)  # fmt: skip
        repository = {"format": "DOCKER"}
        ok("POST", f"/artifactregistry/v1/{REGION}/repositories", repository, repositoryId="hub")
        self.declare("gcp:artifactregistry/repository:Repository", f"{REGION}/repositories/hub", project=P,
                     location="us-east4", repositoryId="hub")  # fmt: skip

    def _leases(self) -> None:
        self.project.network()
        self.declare("gcp:compute/network:Network", NETWORK, project=P, name="net")
        self.declare("gcp:compute/subnetwork:Subnetwork", SUBNETWORK, project=P, region="us-east5", name="net-us-east5")
        rule = {
            "name": "net-gateway",
            "network": NETWORK,
            "sourceRanges": ["10.0.0.0/26"],
            "targetTags": ["bezel-node"],
        }
        allowed = [{"IPProtocol": "tcp", "ports": ["8000"]}]
        self.project.ok("POST", f"{COMPUTE}/global/firewalls", {**rule, "allowed": allowed})
        self.declare("gcp:compute/firewall:Firewall", f"{PARENT}/global/firewalls/net-gateway", project=P,
                     allows=[{"protocol": "tcp", "ports": ["8000"]}], **rule)  # fmt: skip
        choice = ZoneChoice("us-east5-a", 600.0)
        where: dict[str, Any] = {"project": P, "subnetwork": SUBNETWORK}
        shared = {**_MACHINE, "run_seconds": 14_400, "tags": ("bezel-node",)}
        vm = instance_body(machine_type="ct6e-standard-1t", source_image="projects/i/global/images/family/f", **shared)
        tpu = queued_body("tpu", accelerator_type="v6e-1", runtime_version="v2-alpha-tpuv6e", network=NETWORK, **shared)
        self.project.ok(
            "POST", f"{COMPUTE}/zones/us-east5-a/instances", instance_in_zone(vm, choice, name="vm", **where)
        )
        self.project.ok("POST", f"/tpu/v2alpha1/{PARENT}/locations/us-east5-a/queuedResources",
                        queued_in_zone(tpu, choice, name="tpu", **where), queuedResourceId="tpu")  # fmt: skip
        self.project.passes(120)
        self.project.passes(120)
        self.project.ok("GET", NODE)
        for name, back_end, body in (("vm", "flex_start_vm", vm), ("tpu", "queued_resource", tpu)):
            self.declare("pulumi-python:dynamic/components:TpuRequest", f"lease-{name}", {"name": name}, project=P,
                         name=name, back_end=back_end, zones=[{"zone": "us-east5-a"}], body=body)  # fmt: skip


def resource(type_: str, id_: str, inputs: dict[str, Any], outputs: dict[str, Any] | None = None) -> dict[str, Any]:
    """A resource as a state has it."""
    urn = f"urn:pulumi:dev::bezel::{type_}::{id_.rpartition('/')[2]}"
    all_outputs = {**inputs, **(outputs or {})}
    return {"urn": urn, "type": type_, "custom": True, "id": id_, "inputs": inputs, "outputs": all_outputs}


@contextmanager
def owned_stack(folder: Path) -> Iterator[OwnedStack]:
    """The stack, deployed."""
    work = folder / "work"
    work.mkdir()
    (work / "Pulumi.yaml").write_text("name: bezel\nruntime: python\n")
    project = Project(folder / "cloud")
    with serving() as server:
        environ = {f"GOOGLE_{name}_CUSTOM_ENDPOINT": f"{server.url}/{name}-unserved/" for name in _GOOGLE}
        environ |= {f"GOOGLE_{name}_CUSTOM_ENDPOINT": f"{server.url}/{path}/" for name, path in _PREFIX.items()}
        environ |= {
            "PULUMI_BACKEND_URL": f"file://{work}/state",
            "GOOGLE_OAUTH_ACCESS_TOKEN": ACCESS_TOKEN,
            "GOOGLE_CLOUD_PROJECT": P,
        }
        made = OwnedStack(project, work, environ)
        made.make()
        server.routes.append(made.answer)
        yield made
    project.close()
