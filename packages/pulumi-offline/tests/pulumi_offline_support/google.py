"""A Google at the wire: a real HTTP server that keeps resources in memory, records requests and fails on demand."""

import base64
import hashlib
import json
import re
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qsl, unquote, urlsplit

from pulumi_offline_support import google_balancers as balancers
from pulumi_offline_support import google_compute as compute

NUMBER = "123456789012"
PROJECT = "bezel-local"
NOW = "2026-11-21T10:00:00.000000Z"
DROPPED = 0  # the status of a fault that ends the connection before the request takes effect


@dataclass
class Request:
    method: str
    path: str
    query: dict[str, str]
    body: Any
    authorization: str = ""

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


@dataclass
class Fault:
    pattern: str
    status: int
    answer: Any
    times: int


@dataclass
class Boundary:
    """The place where a provider dies: at a request of a call, before Google sees it or after Google has done it."""

    number: int
    side: str  # before or after
    reached: threading.Event = field(default_factory=threading.Event)
    dead: threading.Event = field(default_factory=threading.Event)

    def hold(self) -> None:
        """Keep the request here until its sender is dead."""
        self.reached.set()
        self.dead.wait(60)


PLACES = {
    "CLOUD_RUN_V2": "run/v2/",
    "STORAGE": "storage/v1/",
    "IAM": "iam/v1/",
    "IAM_BETA": "iam/v1/",
    "KMS": "cloudkms/v1/",
    "SECRET_MANAGER": "secretmanager/v1/",
    "ARTIFACT_REGISTRY": "artifactregistry/v1/",
    "SERVICE_USAGE": "serviceusage/v1/",
    "RESOURCE_MANAGER": "crm/v1/",
    "COMPUTE": "compute/v1/",
    "CERTIFICATE_MANAGER": "certificatemanager/v1/",
    "DNS": "dns/v1/",
    "BILLING_BUDGETS": "billingbudgets/v1/",
    "LOGGING": "logging/v2/",
    "MONITORING": "monitoring/",
    "CLOUD_SCHEDULER": "cloudscheduler/v1/",
}
POOLS = f"/iam/v1/projects/{PROJECT}/locations/"
NUMBERED = ("/billingbudgets/v1/", "/monitoring/v3/", "/monitoring/v1/")  # APIs that choose the ids of what is made
SLOW = {
    "POST": ("/run/", "/artifactregistry/", "/compute/", "/certificatemanager/", POOLS),
    "PATCH": ("/run/", "/compute/", "/certificatemanager/", POOLS),
    "DELETE": ("/run/", "/artifactregistry/", "/compute/", "/certificatemanager/", POOLS),
}


@dataclass
class FakeGoogle:
    """Start with `with FakeGoogle() as google`; `google.base` is its address."""

    project: str = PROJECT
    polls: int = 0  # how often an operation is asked for before it is done
    things: dict[str, dict[str, Any]] = field(default_factory=dict)
    policies: dict[str, dict[str, Any]] = field(default_factory=dict)
    payloads: dict[str, str] = field(default_factory=dict)
    enabled: set[str] = field(default_factory=set)
    requests: list[Request] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    failing: dict[str, Any] = field(default_factory=dict)  # "create"/"update" of a run service -> operation error
    pending: dict[str, tuple[int, dict[str, Any]]] = field(default_factory=dict)
    count: int = 0
    places: dict[str, str] = field(default_factory=lambda: dict(PLACES))
    # Where creates, updates and deletions are answered with an operation.
    slow: dict[str, tuple[str, ...]] = field(default_factory=lambda: dict(SLOW))
    boundary: Boundary | None = None
    arrived: int = 0  # requests since the boundary was set
    lock: threading.RLock = field(default_factory=threading.RLock)

    def __enter__(self) -> Self:
        google = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def handle_any(self) -> None:
                length = int(self.headers.get("Content-Length", 0))
                raw = self.rfile.read(length)
                parts = urlsplit(self.path)
                boundary = google.boundary_of_request()
                if boundary is not None and boundary.side == "before":
                    boundary.hold()
                    self.close_connection = True
                    return
                status, answer = google.answer(
                    self.command, unquote(parts.path), dict(parse_qsl(parts.query)), raw, dict(self.headers)
                )
                if boundary is not None:
                    boundary.hold()
                    self.close_connection = True
                    return
                if status == DROPPED:
                    self.close_connection = True
                    return
                body = b"" if answer is None else json.dumps(answer).encode()
                self.send_response(status)
                digest = google.things.get(parts.path, {}).get("digest")
                if digest:
                    self.send_header("Docker-Content-Digest", digest)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = do_HEAD = handle_any  # noqa: N815

            def log_message(self, *arguments: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.base = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.005,), daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self.server.shutdown()
        self.server.server_close()

    def serve(self, api: str, place: str) -> None:
        """Serve one more API, below a place like iam/v1/, whose every change is a long-running operation."""
        self.places[api] = place
        self.slow = {method: (*prefixes, f"/{place}") for method, prefixes in self.slow.items()}

    def environment(self) -> dict[str, str]:
        return {
            **{f"GOOGLE_{api}_CUSTOM_ENDPOINT": f"{self.base}/{path}" for api, path in self.places.items()},
            "GOOGLE_PROJECT": self.project,
            "GOOGLE_CLOUD_PROJECT": self.project,
            "GOOGLE_OAUTH_ACCESS_TOKEN": "not-a-real-access-token",
            "BEZEL_REGISTRY_ENDPOINT": self.base,
        }

    def clear(self) -> None:
        """Forget everything."""
        for kept in (self.things, self.policies, self.payloads, self.enabled, self.requests, self.faults, self.pending):
            kept.clear()
        self.boundary = None

    def remains(self) -> list[str]:
        """What is there: things that are not destroyed, members of policies, enabled services."""
        keys = [key for key, thing in self.things.items() if thing.get("state") != "DESTROYED"]
        things = [key for key in keys if compute.is_requested(key, self.things[key])]
        return [*things, *(key for key, policy in self.policies.items() if policy.get("bindings")), *self.enabled]

    def hold_at(self, boundary: Boundary) -> None:
        """Hold the request with this number, counted from now on."""
        self.boundary, self.arrived = boundary, 0

    def boundary_of_request(self) -> Boundary | None:
        """The boundary, where the request that arrives stands at it."""
        with self.lock:
            number, self.arrived = self.arrived, self.arrived + 1
            return self.boundary if self.boundary is not None and self.boundary.number == number else None

    def fail(self, pattern: str, status: int, answer: Any, times: int = 1) -> None:
        """Answer the next requests that match `METHOD /path` with an error."""
        self.faults.append(Fault(pattern, status, answer, times))

    def requests_of(self, *methods: str) -> list[Request]:
        return [item for item in self.requests if not methods or item.method in methods]

    def answer(self, method: str, path: str, query: dict[str, str], raw: bytes, headers: dict[str, str]) -> Any:
        body = json.loads(raw) if raw[:1] == b"{" else raw.decode("utf-8", "replace") or None
        request = Request(method, path, query, body, headers.get("Authorization", ""))
        with self.lock:
            self.requests.append(request)
            for fault in self.faults:
                if fault.times > 0 and re.fullmatch(fault.pattern, str(request)):
                    fault.times -= 1
                    return fault.status, fault.answer
            return self.route(request, raw)

    def route(self, request: Request, raw: bytes) -> tuple[int, Any]:
        path = request.path
        if path.endswith((":getIamPolicy", ":setIamPolicy", "/iam")):
            return self.policy(request)
        verb = re.fullmatch(r"(.+):(addVersion|enable|disable|destroy|access)", path)
        if verb and path.startswith("/secretmanager/"):
            return self.verb(verb[1], verb[2], request.body)
        if path.startswith("/cloudscheduler/") and path.endswith((":pause", ":resume")):
            return self.job_state(path)
        if path.startswith("/cloudkms/") and path.endswith(("/cryptoKeyVersions", ":destroy")):
            return self.key_versions(path)
        fixed = {
            "/token": {"access_token": "not-a-real-granted-token", "expires_in": 3600},
            f"/compute/v1/projects/{NUMBER}": {"id": NUMBER, "name": self.project},
            f"/crm/v1/projects/{self.project}": {
                "projectId": self.project,
                "projectNumber": NUMBER,
                "name": self.project,
                "lifecycleState": "ACTIVE",
            },
        }
        if path in fixed:
            return 200, fixed[path]
        if "/operations/" in path:
            return self.poll(path)
        if path.startswith("/dns/") and re.search("/(rrsets|changes)(/|$)", path):
            self.count += path.endswith("/changes")
            return balancers.records_of_zone(self.things, path, request.query, request.body, self.count)
        if path.startswith("/serviceusage/"):
            return self.usage(request)
        if path.startswith("/upload/"):
            return self.upload(path.removeprefix("/upload"), request, raw)
        return self.thing(request)

    def job_state(self, path: str) -> tuple[int, Any]:
        """Pause or resume a job."""
        name, _, verb = path.rpartition(":")
        if name not in self.things:
            return 404, {"error": {"code": 404, "message": "Job not found.", "status": "NOT_FOUND"}}
        self.things[name]["state"] = {"pause": "PAUSED", "resume": "ENABLED"}[verb]
        return 200, self.things[name]

    def thing(self, request: Request) -> tuple[int, Any]:
        path = request.path
        if path.endswith(":listAttestationRules"):
            return 200, {}
        if path.endswith(("/o", "/anywhereCaches/")):
            return 200, {"items": [item for key, item in self.things.items() if key.startswith(path + "/")]}
        if standing := compute.standing(self.base, path):
            self.things.setdefault(path, standing)
        if request.method == "POST":
            return self.change_by_verb(request) or self.create(request)
        thing = self.things.get(path)
        if thing is None:
            return 404, {"error": {"code": 404, "message": f"{path} was not found.", "status": "NOT_FOUND"}}
        if request.method == "DELETE":
            del self.things[path]
            return (200, self.operation(path, {}, kind="delete")) if path.startswith(self.slow["DELETE"]) else (200, {})
        if request.method == "PATCH":
            return self.patch(path, thing, request.body)
        if request.method == "PUT" and path.startswith("/compute/"):
            return self.patch(path, thing, request.body)
        if request.method == "PUT":
            self.things[path] = request.body
        return 200, self.things[path]

    def change_by_verb(self, request: Request) -> tuple[int, Any] | None:
        """Change a thing of Compute Engine by a verb; None where the path has none."""
        owner, verb = balancers.whole_path(request.path).rpartition("/")[::2]
        if verb in balancers.VERBS and owner in self.things:
            content = balancers.change(self.things[owner], verb, request.query, request.body)
            return self.patch(owner, self.things[owner], content)
        owner = compute.of_verb(request.path)
        if owner not in self.things:
            return None
        return self.patch(owner, self.things[owner], compute.verb_content(request.path, request.body))

    def create(self, request: Request) -> tuple[int, Any]:
        path, body, query = request.path, dict(request.body or {}), request.query
        name = next((value for key, value in query.items() if key.lower().endswith("id")), body.get("name"))
        name = name.rpartition("/")[2] if path.startswith("/cloudscheduler/") else name
        if "accountId" in body:
            email = f"{body['accountId']}@{self.project}.iam.gserviceaccount.com"
            name, body = email, {**body["serviceAccount"], "email": email, "uniqueId": "1", "etag": "a"}
            body["name"] = f"projects/{self.project}/serviceAccounts/{email}"
        if "roleId" in body:
            name = body["roleId"]
            body = {**body["role"], "name": f"projects/{self.project}/roles/{name}"}
        if path.startswith(NUMBERED):
            self.count += 1
            made = {**body, "name": f"{'/'.join(path.split('/')[3:])}/{self.count}"}
            self.things[f"{path}/{self.count}"] = made
            return 200, made
        key = f"{path}/{name}"
        if key in self.things:
            return 409, {"error": {"code": 409, "message": f"{name} already exists.", "status": "ALREADY_EXISTS"}}
        made = {**body, "createTime": NOW}
        if path.startswith("/compute/"):
            made = balancers.resource_of(key, body, compute.resource_of(self.base, key, body))
        made = balancers.with_name(path, key, made)
        if path.startswith("/storage/"):
            made |= {"projectNumber": NUMBER, "timeCreated": NOW, "selfLink": f"{self.base}{key}"}
            made |= {"location": made["location"].upper()} if "location" in made else {}
        if path.startswith("/secretmanager/"):
            made["name"] = f"projects/{NUMBER}/secrets/{name}"
        made |= _of_kms(key, body)
        if path.startswith("/artifactregistry/"):
            made |= {"name": key.removeprefix("/artifactregistry/v1/"), "registryUri": f"registry/{name}"}
        if path.startswith("/run/"):
            made = self.run(key, made, 1)
            self.things[key] = made
            return 200, self.operation(key, made, self.failing.pop("create", None))
        self.things[key] = made
        return 200, self.operation(key, made, kind="insert") if path.startswith(self.slow["POST"]) else made

    def run(self, key: str, body: dict[str, Any], generation: int) -> dict[str, Any]:
        name = key.removeprefix("/run/v2/")
        revision = f"{name}/revisions/{name.rsplit('/', 1)[-1]}-{generation:05d}-abc"
        return {
            "traffic": [{"type": "TRAFFIC_TARGET_ALLOCATION_TYPE_LATEST", "percent": 100}],
            **body,
            "name": name,
            "generation": str(generation),
            "etag": f'"{generation}"',
            "uri": "http://127.0.0.1:1",
            "urls": ["http://127.0.0.1:1"],
            "latestReadyRevision": revision,
            "latestCreatedRevision": revision,
            "terminalCondition": {"type": "Ready", "state": "CONDITION_SUCCEEDED"},
            "conditions": [{"type": "RoutesReady", "state": "CONDITION_SUCCEEDED"}],
        }

    def patch(self, path: str, thing: dict[str, Any], body: dict[str, Any]) -> tuple[int, Any]:
        if path.startswith("/run/"):
            self.things[path] = self.run(path, body, int(thing["generation"]) + 1)
            return 200, self.operation(path, self.things[path], self.failing.pop("update", None))
        thing.update(body.get("serviceAccount", body))
        return 200, self.operation(path, thing) if path.startswith(self.slow["PATCH"]) else thing

    def operation(self, key: str, response: dict[str, Any], error: Any = None, kind: str = "patch") -> dict[str, Any]:
        self.count += 1
        if key.startswith("/compute/"):
            ended = compute.operation(self.base, key, self.count, kind, done=True)
            if self.polls:
                self.pending[urlsplit(ended["selfLink"]).path] = (self.polls, ended)
            return compute.operation(self.base, key, self.count, kind, done=not self.polls)
        api, version, rest = key.lstrip("/").split("/", 2)
        parent = rest if key.startswith(POOLS) else re.sub(r"/[^/]+/[^/]+$", "", rest)
        parent = re.sub(r"/certificateMaps/.*", "", parent)  # operations are the location's
        name = f"{parent}/operations/op-{self.count}" if api != "serviceusage" else f"operations/op-{self.count}"
        done = {"name": name, "done": True, **({"error": error} if error else {"response": response})}
        if not self.polls:
            return done
        self.pending[f"/{api}/{version}/{name}"] = (self.polls, done)
        return {"name": name}

    def poll(self, path: str) -> tuple[int, Any]:
        left, done = self.pending[path]
        self.pending[path] = (left - 1, done)
        return 200, done if left <= 1 else {**done, "done": False, "status": "RUNNING"}

    def policy(self, request: Request) -> tuple[int, Any]:
        key = re.sub(r"(:[gs]etIamPolicy|/iam)$", "", request.path)
        now = self.policies.setdefault(key, {"version": 1, "etag": "e0"})
        if request.path.endswith(":setIamPolicy") or request.method == "PUT":
            wanted = request.body.get("policy", request.body)
            if wanted["etag"] != now["etag"]:
                return 409, {"error": {"code": 409, "message": "There were concurrent policy changes."}}
            self.count += 1
            now = self.policies[key] = {**wanted, "etag": f"e{self.count}"}
        return 200, now

    def verb(self, path: str, verb: str, body: Any) -> tuple[int, Any]:
        if verb == "addVersion":
            name = f"projects/{NUMBER}/secrets/{path.rsplit('/', 1)[-1]}"
            number = 1 + sum(key.startswith(f"/secretmanager/v1/{name}/") for key in self.things)
            made = {"name": f"{name}/versions/{number}", "state": "ENABLED", "createTime": NOW}
            self.things[f"/secretmanager/v1/{name}/versions/{number}"] = made
            self.payloads[made["name"]] = body["payload"]["data"]
            return 200, made
        thing = self.things[path]
        if verb == "access":
            return 200, {"name": thing["name"], "payload": {"data": self.payloads[thing["name"]]}}
        thing["state"] = {"enable": "ENABLED", "disable": "DISABLED", "destroy": "DESTROYED"}[verb]
        return 200, thing

    def key_versions(self, path: str) -> tuple[int, Any]:
        key = re.sub(r"/cryptoKeyVersions.*", "", path)
        if key not in self.things:
            return 404, {"error": {"code": 404, "message": f"{key} was not found.", "status": "NOT_FOUND"}}
        version = self.things[key]["primary"]
        if path.endswith(":destroy"):
            version["state"] = "DESTROY_SCHEDULED"
            return 200, version
        return 200, {"cryptoKeyVersions": [version], "totalSize": 1}

    def usage(self, request: Request) -> tuple[int, Any]:
        names = (request.body or {}).get("serviceIds") or [request.path.rsplit("/", 1)[-1].split(":")[0]]
        if request.method == "GET":
            return 200, {"services": [{"name": f"projects/{NUMBER}/services/{name}"} for name in sorted(self.enabled)]}
        self.enabled = self.enabled - set(names) if request.path.endswith(":disable") else self.enabled | set(names)
        return 200, self.operation(request.path, {})

    def upload(self, path: str, request: Request, raw: bytes) -> tuple[int, Any]:
        mark = b"--" + raw.split(b"\r\n", 1)[0][2:]
        content = raw.split(mark)[2].split(b"\r\n\r\n", 1)[1].removesuffix(b"\r\n")
        name = request.query["name"]
        self.count += 1
        made = {
            "name": name,
            "bucket": path.split("/")[4],
            "generation": str(self.count),
            "md5Hash": base64.b64encode(hashlib.md5(content, usedforsecurity=False).digest()).decode(),
            "contentType": "text/plain; charset=utf-8",
        }
        self.things[f"{path}/{name}"] = made
        return 200, made


def _of_kms(key: str, body: dict[str, Any]) -> dict[str, Any]:
    """What Cloud KMS adds to a new ring or key."""
    if not key.startswith("/cloudkms/"):
        return {}
    name = key.removeprefix("/cloudkms/v1/")
    if "purpose" not in body:
        return {"name": name}
    return {
        "name": name,
        "destroyScheduledDuration": "2592000s",
        "versionTemplate": {"algorithm": "GOOGLE_SYMMETRIC_ENCRYPTION", "protectionLevel": "SOFTWARE"},
        "primary": {"name": f"{name}/cryptoKeyVersions/1", "state": "ENABLED"},
    }
