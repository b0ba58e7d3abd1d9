"""A user of localcloud, for its tests: calls with a token, operations waited for, services made."""

import json
import sys
import time
from pathlib import Path

import httpx

from bezel_base.loopback.plain_http import NO_TLS
from bezel_localcloud import control
from bezel_localcloud.core.paths import PROJECT, Endpoint
from localcloud_support.discovery_check import answer_problems, method_of, request_problems
from localcloud_support.made_keys import write_keys

PARENT = f"projects/{PROJECT}"
REGION = "us-east4"
SERVICES = f"/run/v2/{PARENT}/locations/{REGION}/services"
REPOSITORY = f"{PARENT}/locations/{REGION}/repositories/hub"
RUNTIME = f"runtime@{PROJECT}.iam.gserviceaccount.com"
DEPLOYER = f"deployer@{PROJECT}.iam.gserviceaccount.com"
APIS = ("run", "iam", "iamcredentials", "secretmanager", "artifactregistry")
# For calls without a token of one's own.
plain = httpx.Client(timeout=30, trust_env=False, verify=NO_TLS)
FAKE_DAEMON = Path(__file__).with_name("fake_daemon.py")


def start_daemon(directory: Path, speed: float = 10_000, idle: float = 900, *, makes_keys: bool = False) -> Endpoint:
    """A daemon with fake containers, which makes its own keys only where a test looks at what it does with them."""
    if not makes_keys:
        write_keys(directory)
    return control.launch(directory, [sys.executable, str(FAKE_DAEMON), str(directory), str(speed), str(idle)])


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and waits for its parent does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except OSError:
        return False


def until(condition, seconds: float = 60.0):
    """What a condition yields once it is true; it is asked less often the longer it takes."""
    began = time.monotonic()
    while not (result := condition()):
        waited = time.monotonic() - began
        assert waited < seconds, "condition not met in time"
        time.sleep(min(0.01 + waited / 50, 0.05))
    return result


def check_answer(answer: httpx.Response) -> str:
    """Hold an answer, and the request if it was accepted, against Google's discovery documents; the method's id."""
    request = answer.request
    path = request.url.raw_path.decode().partition("?")[0]
    call = method_of(request.method, path)
    if call is None:
        return ""
    problems = [] if is_content(answer) else answer_problems(call, answer.status_code, answer.read())
    if answer.is_success and not path.startswith(("/upload/", "/download/")):
        problems += request_problems(call, list(request.url.params.multi_items()), sent_json(request))
    assert not problems, f"{request.method} {path} ({call.id}): " + "; ".join(problems)
    return call.id


def is_content(answer: httpx.Response) -> bool:
    """Whether an answer is an object's bytes, or where to put them."""
    params = answer.request.url.params
    return answer.is_success and (params.get("alt") == "media" or params.get("uploadType") == "resumable")


def sent_json(request: httpx.Request) -> object:
    return json.loads(request.content) if request.content else None


class Client:
    """Calls as the deployer, or as another account; every one is checked, and noted in `seen`: (method, status)."""

    def __init__(self, endpoint: Endpoint, token: str | None = None) -> None:
        self.endpoint = endpoint
        self.seen: list[tuple[str, int]] = []
        headers = {"Authorization": f"Bearer {token or control.access_token(endpoint)}"}
        self.http = httpx.Client(
            base_url=endpoint.base,
            headers=headers,
            timeout=30,
            trust_env=False,
            verify=NO_TLS,
            event_hooks={"response": [lambda answer: self.seen.append((check_answer(answer), answer.status_code))]},
        )

    def get(self, path: str, **query: object) -> httpx.Response:
        return self.http.get(path, params=query)

    def post(self, path: str, body: object = None, **query: object) -> httpx.Response:
        return self.http.post(path, json={} if body is None else body, params=query)

    def patch(self, path: str, body: object, **query: object) -> httpx.Response:
        return self.http.patch(path, json=body, params=query)

    def put(self, path: str, body: object) -> httpx.Response:
        return self.http.put(path, json=body)

    def delete(self, path: str) -> httpx.Response:
        return self.http.delete(path)

    def finish(self, prefix: str, answer: httpx.Response) -> dict:
        """The operation of an answer when it has ended."""
        assert answer.status_code == 200, answer.text
        name = answer.json()["name"]

        def final_operation():
            operation = self.get(f"/{prefix}/{name}").json()
            return operation if operation.get("done") else None

        return until(final_operation)

    def enable(self, *names: str) -> None:
        ids = [f"{name}.googleapis.com" for name in names]
        self.finish(
            "serviceusage/v1beta1", self.post(f"/serviceusage/v1/{PARENT}/services:batchEnable", {"serviceIds": ids})
        )

    def grant(self, path: str, role: str, member: str) -> None:
        """Add a grant to a policy, as the provider does: read, modify, write with the etag."""
        policy = self.get(f"{path}:getIamPolicy").json()
        policy.setdefault("bindings", []).append({"role": role, "members": [member]})
        answer = self.post(f"{path}:setIamPolicy", {"policy": policy})
        assert answer.status_code == 200, answer.text

    def grant_project(self, role: str, member: str) -> None:
        """As `grant`, on the project: there the policy is asked for with POST."""
        policy = self.post(f"/crm/v1/{PARENT}:getIamPolicy").json()
        policy["bindings"].append({"role": role, "members": [member]})
        assert self.post(f"/crm/v1/{PARENT}:setIamPolicy", {"policy": policy}).status_code == 200

    def grant_bucket(self, bucket: str, role: str, member: str) -> None:
        policy = self.get(f"/storage/v1/b/{bucket}/iam").json()
        policy["bindings"].append({"role": role, "members": [member]})
        assert self.put(f"/storage/v1/b/{bucket}/iam", policy).status_code == 200

    def account(self, name: str) -> str:
        answer = self.post(f"/iam/v1/{PARENT}/serviceAccounts", {"accountId": name, "serviceAccount": {}})
        assert answer.status_code in {200, 409}, answer.text
        return f"{name}@{PROJECT}.iam.gserviceaccount.com"

    def identity(self, audience: str, account: str = DEPLOYER) -> str:
        path = f"/iamcredentials/v1/projects/-/serviceAccounts/{account}:generateIdToken"
        answer = self.post(path, {"audience": audience})
        assert answer.status_code == 200, answer.text
        return answer.json()["token"]

    def as_account(self, account: str) -> "Client":
        path = f"/iamcredentials/v1/projects/-/serviceAccounts/{account}:generateAccessToken"
        answer = self.post(path, {"scope": ["https://www.googleapis.com/auth/cloud-platform"]})
        return Client(self.endpoint, answer.json()["accessToken"])

    def digest(self, tag: str = "v0.32.0") -> str:
        path = f"/v2/vllm/vllm-openai/manifests/{tag}"
        return self.http.head(path, params={"ns": "docker.io"}).headers["docker-content-digest"]

    def prepare(self) -> None:
        """Make what a service needs, once: APIs, the runtime account, the mirror, a bucket for that account."""
        if self.get("/storage/v1/b/models").status_code == 200:
            return
        self.enable(*APIS)
        self.account("runtime")
        body = {
            "format": "DOCKER",
            "mode": "REMOTE_REPOSITORY",
            "remoteRepositoryConfig": {"dockerRepository": {"publicRepository": "DOCKER_HUB"}},
        }
        path = f"/artifactregistry/v1/{PARENT}/locations/{REGION}/repositories"
        self.finish("artifactregistry/v1", self.post(path, body, repository_id="hub"))
        assert self.post("/storage/v1/b", {"name": "models", "location": "US"}, project=PROJECT).status_code == 200
        self.grant_bucket("models", "roles/storage.objectViewer", f"serviceAccount:{RUNTIME}")

    def template(self, *args: str, **changes: object) -> dict:
        container = {
            "image": f"{REGION}-docker.pkg.dev/{PROJECT}/hub/vllm/vllm-openai@{self.digest()}",
            "args": list(args),
            "ports": [{"name": "http1", "containerPort": 8080}],
            "resources": {"limits": {"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "1"}},
            "startupProbe": {
                "httpGet": {"path": "/health"},
                "periodSeconds": 10,
                "timeoutSeconds": 5,
                "failureThreshold": 30,
            },
        }
        container |= {
            key: changes.pop(key) for key in list(changes) if key in {"env", "volumeMounts", "command", "image"}
        }
        return {
            "containers": [container],
            "serviceAccount": RUNTIME,
            "nodeSelector": {"accelerator": "nvidia-l4"},
            "gpuZonalRedundancyDisabled": True,
            "maxInstanceRequestConcurrency": 4,
            "scaling": {"maxInstanceCount": 1},
        } | changes

    def create(self, service: str, template: dict, **body: object) -> dict:
        return self.finish("run/v2", self.post(SERVICES, {"template": template} | body, serviceId=service))

    def update(self, service: str, template: dict, **body: object) -> dict:
        return self.finish("run/v2", self.patch(f"{SERVICES}/{service}", {"template": template} | body))

    def service(self, service: str) -> dict:
        return self.get(f"{SERVICES}/{service}").json()

    def remove(self, service: str) -> None:
        self.finish("run/v2", self.delete(f"{SERVICES}/{service}"))

    def front(self, service: str, account: str = DEPLOYER) -> httpx.Client:
        uri = self.service(service)["uri"]
        headers = {"Authorization": f"Bearer {self.identity(uri, account)}"}
        return httpx.Client(base_url=uri, headers=headers, timeout=30, trust_env=False, verify=NO_TLS)

    def log(self, service: str, more: str = "") -> list[dict]:
        terms = f'resource.type="cloud_run_revision" AND resource.labels.service_name="{service}" {more}'
        body = {"resourceNames": [PARENT], "filter": terms, "pageSize": 1000}
        answer = self.post("/logging/v2/entries:list", body)
        assert answer.status_code == 200, answer.text
        return answer.json().get("entries", [])
