"""Compare the stand-in `gcp` provider with recordings of the real one: requests on the wire and answers to the engine.

    python tools/compare_traffic.py FOLDER [--show TYPE]

FOLDER holds `http/<type>.<operation>.lro-done.json` (exchanges with Google) and `state/<type>.<name>.json` (calls of
the engine). Every recorded call is made again against the stand-in, with a server that gives the recorded answers.
Printed is one line per resource and operation: equal, or what differs. Identical reads in a row count once, as the real
provider waits by reading; `__meta` and `__pulumi_raw_state_delta` are its bridge's own and are left out.
"""

import argparse
import itertools
import json
import re
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent import futures
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import grpc
from google.protobuf import json_format
from pulumi.runtime.proto import provider_pb2 as pb
from pulumi.runtime.proto import provider_pb2_grpc

from bezel.localcloud.providers.google_plugin import GooglePlugin
from bezel.localcloud.providers.rows import TYPES

OPERATIONS = {"create": "create", "refresh": "read", "update": "update", "destroy": "delete", "preview": None}
PREFIXES = {
    "cloudRunV2": "run/v2/",
    "storage": "storage/v1/",
    "iam": "iam/v1/",
    "secretManager": "secretmanager/v1/",
    "artifactRegistry": "artifactregistry/v1/",
    "serviceUsage": "serviceusage/v1beta1/",
    "resourceManager": "crm/v1/",
    "compute": "compute/beta/",
}
IGNORED = ("__meta", "__pulumi_raw_state_delta")
REQUESTS = {
    "Check": pb.CheckRequest,
    "Diff": pb.DiffRequest,
    "Create": pb.CreateRequest,
    "Read": pb.ReadRequest,
    "Update": pb.UpdateRequest,
    "Delete": pb.DeleteRequest,
}


@dataclass
class Replay:
    """A server that answers as recorded and remembers what it was asked."""

    exchanges: list[dict[str, Any]] = field(default_factory=list)
    asked: list[dict[str, Any]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

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

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        self.base = f"http://127.0.0.1:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return self.base

    def answer(self, method: str, path: str, query: dict[str, str], raw: bytes) -> tuple[int, Any]:
        """The next recorded answer to a request, or the last one again."""
        with self.lock:
            body = json.loads(raw) if raw[:1] == b"{" else "<multipart>" if raw else None
            self.asked.append({"method": method, "path": path, "query": query, "body": body})
            same = [item for item in self.exchanges if (item["method"], item["path"]) == (method, path)]
            if not same:
                return 404, {"error": {"code": 404, "message": f"not recorded: {method} {path}"}}
            fresh = next((item for item in same if not item.get("used")), same[-1])
            fresh["used"] = True
            return int(fresh["status"]), fresh["answer"]


def load(path: Path) -> Any:
    """A recording, with the attribution label of the published plugin."""
    return json.loads(path.read_text().replace("goog-terraform-provisioned", "goog-pulumi-provisioned"))


def folded(requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Requests without the repetition of identical reads, and without what no comparison can hold."""
    plain = []
    for item in requests:
        body = item.get("body")
        body = "<multipart>" if isinstance(body, dict) and "_multipart" in body else body
        if isinstance(body, dict) and "serviceIds" in body:
            body = {**body, "serviceIds": sorted(body["serviceIds"])}  # in the order in which they happened to come
        plain.append({"method": item["method"], "path": item["path"], "query": item["query"], "body": body})
    return [key for key, _ in itertools.groupby(plain)]


def distinct(requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each request once and in one order: for resources that were made at the same time."""
    once = {json.dumps(item, sort_keys=True): item for item in folded(requests)}
    return [once[key] for key in sorted(once)]


def differences(recorded: Any, ours: Any, path: str = "") -> Iterator[str]:
    """Every leaf in which two JSON values differ."""
    if isinstance(recorded, dict) and isinstance(ours, dict):
        for key in sorted(recorded.keys() | ours.keys()):
            if key not in IGNORED:
                yield from differences(recorded.get(key, "(absent)"), ours.get(key, "(absent)"), f"{path}.{key}")
    elif isinstance(recorded, list) and isinstance(ours, list) and len(recorded) == len(ours):
        for index, (left, right) in enumerate(zip(recorded, ours, strict=True)):
            yield from differences(left, right, f"{path}[{index}]")
    elif recorded != ours:
        yield f"{path}: recorded {json.dumps(recorded)[:160]}, ours {json.dumps(ours)[:160]}"


class Comparison:
    """The recordings of one folder against one stand-in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.replay = Replay()
        base = self.replay.start()
        server = grpc.server(futures.ThreadPoolExecutor(8))
        provider_pb2_grpc.add_ResourceProviderServicer_to_server(GooglePlugin({}), server)
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        self.stub = provider_pb2_grpc.ResourceProviderStub(grpc.insecure_channel(f"127.0.0.1:{port}"))
        self.server = server
        arguments = {f"{api}CustomEndpoint": f"{base}/{path}" for api, path in PREFIXES.items()}
        arguments |= {
            "project": "demo-project",
            "region": "us-central1",
            "accessToken": "recorded",
            "pollInterval": "20ms",
        }
        self.stub.Configure(json_format.ParseDict({"args": arguments}, pb.ConfigureRequest()))

    def of_type(self, name: str) -> Iterator[tuple[str, str, list[str]]]:
        """(resource, operation, differences) for each recorded call of a type and for each file of its requests."""
        states = [load(path) for path in sorted((self.folder / "state").glob(f"{name}.*.json"))]
        for phase, operation in OPERATIONS.items():
            file = self.folder / "http" / f"{name}.{operation}.lro-done.json"
            self.replay.exchanges = load(file)["exchanges"] if operation and file.exists() else []
            self.replay.asked = []
            calls = [(state["name"], call) for state in states for call in state["calls"] if call["phase"] == phase]
            with futures.ThreadPoolExecutor(max(1, len(states))) as pool:
                yield from pool.map(self._call, calls) if len(states) > 1 else map(self._call, calls)
            if self.replay.exchanges:
                shape = folded if len(states) == 1 else distinct
                found = list(differences(shape(self.replay.exchanges), shape(self.replay.asked)))
                if found and found[0].startswith(": recorded ["):
                    found = [f"recorded {_lines(self.replay.exchanges)}", f"ours     {_lines(self.replay.asked)}"]
                yield name, f"requests of {operation}", found

    def _call(self, named: tuple[str, dict[str, Any]]) -> tuple[str, str, list[str]]:
        name, call = named
        request = json_format.ParseDict(call["request"], REQUESTS[call["rpc"]](), ignore_unknown_fields=True)
        operation = f"{call['phase']} {call['rpc']}"
        try:
            answer = getattr(self.stub, call["rpc"])(request, timeout=60)
        except grpc.RpcError as error:
            return name, operation, [f"error: {error.details()}"]  # type: ignore[attr-defined]
        ours = json.loads(json.dumps(json_format.MessageToDict(answer)).replace(self.replay.base, "{BASE}"))
        return name, operation, list(differences(call["response"] or {}, ours))


def _lines(requests: list[dict[str, Any]]) -> str:
    return " | ".join(f"{item['method']} {item['path']}" for item in folded(requests))


def main() -> int:
    """Print the comparison; the exit code says nothing about it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--show", default="", help="only types that contain this")
    arguments = parser.parse_args()
    comparison = Comparison(arguments.folder)
    counts: Counter[str] = Counter()
    for token in sorted(TYPES):
        name = re.sub(r"^gcp:(\w+)/\w+:(\w+)$", r"\1.\2", token)
        if arguments.show not in name:
            continue
        for resource, operation, found in comparison.of_type(name):
            kind = "requests" if operation.startswith("requests") else operation.split()[1]
            counts[f"{kind} {'different' if found else 'equal'}"] += 1
            print(f"{name} {resource}: {operation}: {'equal' if not found else f'{len(found)} differences'}")
            for line in found:
                print(f"    {line}")
    for kind in sorted({key.split()[0] for key in counts}):
        print(f"{kind}: {counts[f'{kind} equal']} equal, {counts[f'{kind} different']} different")
    comparison.server.stop(0)
    return 0


if __name__ == "__main__":
    sys.exit(main())
