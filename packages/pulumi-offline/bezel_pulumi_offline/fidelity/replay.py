"""Both ends of a comparison: a server that replays Google, and a client that calls the stand-in as the engine does.

Owns the replaying server, the gRPC stub and the comparison of two JSON values. Leaves the choice of comparisons to
`comparison` and the meaning of differences to `explanations`.
"""

import itertools
import json
import threading
from collections.abc import Iterator, Mapping
from concurrent import futures
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

import grpc
from google.protobuf import empty_pb2, json_format
from pulumi.runtime.proto import provider_pb2 as pb
from pulumi.runtime.proto import provider_pb2_grpc, status_pb2

from bezel_base.errors import Problem
from bezel_pulumi_offline.fidelity.recordings import RecordingsError
from bezel_pulumi_offline.lifecycle.fields import Fields, Kind, Mark
from bezel_pulumi_offline.plugin.google_plugin import GooglePlugin

PREFIXES = {
    "cloudRunV2": "run/v2/",
    "storage": "storage/v1/",
    "iam": "iam/v1/",
    "iamBeta": "iam/v1/",
    "secretManager": "secretmanager/v1/",
    "artifactRegistry": "artifactregistry/v1/",
    "serviceUsage": "serviceusage/v1beta1/",
    "resourceManager": "crm/v1/",
    "compute": "compute/beta/",
    "billingBudgets": "billingbudgets/v1/",
    "monitoring": "monitoring/",
    "cloudScheduler": "cloudscheduler/v1/",
    "certificateManager": "certificatemanager/v1/",
    "dns": "dns/v1beta2/",
}
ABSENT = "(absent)"
# The bridge's own property, which refers to the state of the provider that it wraps.
IGNORED = ("__meta", "__pulumi_raw_state_delta")
REQUESTS = {
    "Handshake": pb.ProviderHandshakeRequest,
    "GetPluginInfo": empty_pb2.Empty,
    "CheckConfig": pb.CheckRequest,
    "DiffConfig": pb.DiffRequest,
    "Configure": pb.ConfigureRequest,
    "Check": pb.CheckRequest,
    "Diff": pb.DiffRequest,
    "Create": pb.CreateRequest,
    "Read": pb.ReadRequest,
    "Update": pb.UpdateRequest,
    "Delete": pb.DeleteRequest,
}


class Difference(NamedTuple):
    """One leaf in which a recording and the stand-in differ."""

    path: str
    recorded: Any
    ours: Any

    def __str__(self) -> str:
        return f"{self.path}: recorded {json.dumps(self.recorded)[:160]}, ours {json.dumps(self.ours)[:160]}"


def differences(recorded: Any, ours: Any, path: str = "") -> Iterator[Difference]:
    """Every leaf in which two JSON values differ."""
    if isinstance(recorded, dict) and isinstance(ours, dict):
        for key in sorted(recorded.keys() | ours.keys()):
            if key not in IGNORED:
                yield from differences(recorded.get(key, ABSENT), ours.get(key, ABSENT), f"{path}.{key}")
    elif isinstance(recorded, list) and isinstance(ours, list):
        for index, (left, right) in enumerate(itertools.zip_longest(recorded, ours, fillvalue=ABSENT)):
            yield from differences(left, right, f"{path}[{index}]")
    elif recorded != ours and not _same_double(recorded, ours):
        yield Difference(path, recorded, ours)


def _same_double(left: Any, right: Any) -> bool:
    """Whether two numbers are the same double on the wire; a recording may have fewer digits."""
    numbers = isinstance(left, (int, float)) and isinstance(right, (int, float))
    return numbers and not isinstance(left, bool) and not isinstance(right, bool) and float(left) == float(right)


def fold(requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Requests without the repetition of identical ones, and without values that cannot be compared."""
    plain = []
    for item in requests:
        body = item.get("body")
        body = "<multipart>" if isinstance(body, dict) and "_multipart" in body else body
        if isinstance(body, dict) and "serviceIds" in body:
            body = {**body, "serviceIds": sorted(body["serviceIds"])}  # in an arbitrary order
        plain.append({"method": item["method"], "path": item["path"], "query": item["query"], "body": body})
    return [key for key, _ in itertools.groupby(plain)]


def distinct(requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each request once, sorted: for resources that were made at the same time."""
    once = {json.dumps(item, sort_keys=True): item for item in fold(requests)}
    return [once[key] for key in sorted(once)]


def answer_of(fields: Fields, properties: dict[str, Any]) -> dict[str, Any]:
    """Google's JSON that yields the given properties: the import's exchange itself was not recorded."""
    answer: dict[str, Any] = {}
    for item in fields:
        value: Any = properties.get(item.name)
        if value in (None, "", 0, [], {}):
            continue
        if item.kind is Kind.BLOCK:
            value = answer_of(item.fields, value)
        elif item.kind is Kind.BLOCKS:
            value = [answer_of(item.fields, one) for one in value]
        if item.marks & Mark.LISTED:
            value = [value]
        elif item.marks & Mark.WRAPPED:
            value = value[0]
        into = answer
        *parents, last = item.path
        for parent in parents:
            into = into.setdefault(parent, {})
        into[last] = value
    return answer


@dataclass
class Replay:
    """A server that returns recorded responses and stores the requests."""

    exchanges: list[dict[str, Any]] = field(default_factory=list)
    asked: list[dict[str, Any]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    base: str = ""
    server: ThreadingHTTPServer | None = None

    def start(self) -> str:
        """Serve, and return the address."""
        replay = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def handle_any(self) -> None:
                raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                parts = urlsplit(self.path)
                status, answer = replay.answer(self.command, unquote(parts.path), dict(parse_qsl(parts.query)), raw)
                body = b"" if answer is None else json.dumps(answer).replace("{BASE}", replay.base).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = handle_any  # noqa: N815

            def log_message(self, *arguments: object) -> None:
                """Keep quiet."""

        self.server = server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        self.base = f"http://127.0.0.1:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return self.base

    def stop(self) -> None:
        """End the server."""
        if self.server is not None:
            self.server.shutdown()
            self.server.server_close()

    def expect(self, exchanges: list[dict[str, Any]]) -> None:
        """Use these exchanges from here on, and forget the stored requests."""
        self.exchanges, self.asked = [dict(item) for item in exchanges], []

    def answer(self, method: str, path: str, query: dict[str, str], raw: bytes) -> tuple[int, Any]:
        """The next recorded response to a request, or the last one again."""
        with self.lock:
            body = json.loads(raw) if raw[:1] == b"{" else "<multipart>" if raw else None
            self.asked.append({"method": method, "path": path, "query": query, "body": body})
            same = [item for item in self.exchanges if (item["method"], item["path"]) == (method, path)]
            if not same:
                return 404, {"error": {"code": 404, "message": f"not recorded: {method} {path}"}}
            fresh = next((item for item in same if not item.get("used")), same[-1])
            fresh["used"] = True
            return int(fresh["status"]), fresh.get("answer")


class StandIn:
    """The stand-in provider over its own protocol, configured as the recorded one was."""

    def __init__(self, base: str, place: Mapping[str, str]) -> None:
        """Start it.

        Args:
            base: Address of Google's APIs.
            place: Project, region and zone.
        """
        self.base = base
        self.left = pb.ErrorResourceInitFailed()
        self.server = grpc.server(futures.ThreadPoolExecutor(8))
        provider_pb2_grpc.add_ResourceProviderServicer_to_server(GooglePlugin({}), self.server)
        port = self.server.add_insecure_port("127.0.0.1:0")
        self.server.start()
        self.channel = grpc.insecure_channel(f"127.0.0.1:{port}")
        self.stub = provider_pb2_grpc.ResourceProviderStub(self.channel)
        arguments = {f"{api}CustomEndpoint": f"{base}/{path}" for api, path in PREFIXES.items()}
        self.call("Configure", {"args": {**arguments, **place, "accessToken": "recorded", "pollInterval": "20ms"}})

    def stop(self) -> None:
        """End its server."""
        self.channel.close()
        self.server.stop(None)

    def call(self, method: str, request: dict[str, Any]) -> dict[str, Any]:
        """The response to a recorded request as JSON; an error as {"error": text, "kept": id left in the state}.

        Raises:
            RecordingsError: The request does not have the form of this call.
        """
        body = json.loads(json.dumps(request).replace("{BASE}", self.base))
        try:
            message = json_format.ParseDict(body, REQUESTS[method](), ignore_unknown_fields=True)
        except json_format.ParseError as error:
            consequence = f"the request of a recorded {method} cannot be sent: {error}"
            raise RecordingsError(Problem(method, None, consequence, "record it again, or remove it.")) from None
        try:
            answer = getattr(self.stub, method)(message, timeout=60)
        except grpc.RpcError as error:
            self.left = _kept_part(error)
            return {"error": f"rpc error: code = {_code(error)} desc = {error.details()}", "kept": self.left.id}
        text = json.dumps(json_format.MessageToDict(answer)).replace(self.base, "{BASE}")
        return dict(json.loads(text))


def _code(error: Any) -> str:
    return str(error.code().name.title().replace("_", ""))


def _kept_part(error: Any) -> pb.ErrorResourceInitFailed:
    """The part of a failed call that stays in the state."""
    detail = pb.ErrorResourceInitFailed()
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            status_pb2.Status.FromString(value).details[0].Unpack(detail)
    return detail
