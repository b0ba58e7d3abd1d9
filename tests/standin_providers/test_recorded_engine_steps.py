"""Steps of the real engine on localcloud, against recordings of the published provider: exit codes and requests.

BEZEL_TRAFFIC names the folder of recordings; `balancer/engine.json` has the steps of programs with a load balancer. The
program below declares what theirs did. Compared are five of its scenarios: how a step ends, each change that it asks
for, each thing that it reads, and of a step that fails what is refused; what ran beside that depends on time. Left out
are the steps with an emulator that refuses no deletion.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pytest

from bezel.engine.local.engine import LocalEngine
from bezel.engine.project.project import Project
from bezel_localcloud import control
from localcloud_support.client import Client
from tests.support.components.component_life import ROOT
from tests.support.e2e import warm_localcloud
from tests.support.standin_providers.balancer_recordings import TRAFFIC, recording

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not TRAFFIC, reason="BEZEL_TRAFFIC does not name a folder with recordings"),
]
FILE = "name: rec\nruntime:\n  name: python\n  options:\n    virtualenv: .venv\n"
PROGRAM = """
import json
import os
import pulumi
from pulumi_gcp import certificatemanager, cloudrunv2, compute, dns

case = json.loads(os.environ["CASE"])
where, domain = os.environ["GOOGLE_CLOUD_PROJECT"], case["domain"]

def name(text):
    return text if case["explicit"] else None

services, groups = [], []
for region in case["regions"]:
    service = cloudrunv2.Service(
        f"svc-{region}", name=case["service"], location=region, deletion_protection=False,
        custom_audiences=[f"https://{domain}"],
        template={"containers": [{"image": case["image"]}], "scaling": {"max_instance_count": 1}},
    )
    groups.append(compute.RegionNetworkEndpointGroup(
        f"neg-{region}", name=name(f"llm-neg-{region}"), region=region, network_endpoint_type="SERVERLESS",
        cloud_run={"service": service.name},
    ))
ip = compute.GlobalAddress("ip", name=name("llm-ip"), description=case["description"] or None)
tls = compute.SSLPolicy("ssl", name=name("llm-tls"), profile="MODERN", min_tls_version="TLS_1_2")
zone = dns.ManagedZone("zone", name=name("llm-zone"), dns_name="example.com.")
dns.RecordSet("a", managed_zone=zone.name, name=f"{domain}.", type="A", ttl=300, rrdatas=[ip.address])
redirect = compute.URLMap("redirect", name=name("llm-redirect"), default_url_redirect={
    "https_redirect": True, "strip_query": False, "redirect_response_code": "MOVED_PERMANENTLY_DEFAULT"})
http = compute.TargetHttpProxy("http", name=name("llm-http"), url_map=redirect.id)
common = {"ip_address": ip.address, "load_balancing_scheme": "EXTERNAL_MANAGED"}
compute.GlobalForwardingRule("rule80", name=name("llm-http-rule"), target=http.id, port_range="80", **common)
backend = compute.BackendService(
    "be", name=name("llm-backend"), protocol="HTTPS", load_balancing_scheme="EXTERNAL_MANAGED",
    backends=[{"group": group.id} for group in groups],
)
routes = compute.URLMap("map", name=name("llm-map"), default_service=backend.id)
if case["certificate"] == "managed":
    certificate = compute.ManagedSslCertificate("mcert", name=name("llm-managed"), managed={"domains": [domain]})
    proof = {"ssl_certificates": [certificate.id]}
else:
    auth = certificatemanager.DnsAuthorization("auth", name="llm-auth", domain=domain)
    record = auth.dns_resource_records[0]
    dns.RecordSet("challenge", managed_zone=zone.name, name=record.name, type=record.type, ttl=300,
                  rrdatas=[record.data])
    certificate = certificatemanager.Certificate(
        "cert", name="llm-cert", managed={"domains": [domain], "dns_authorizations": [auth.id]})
    certificates = certificatemanager.CertificateMap("cmap", name="llm-certmap")
    certificatemanager.CertificateMapEntry(
        "entry", name="llm-entry", map=certificates.name, hostname=domain, certificates=[certificate.id])
    link = pulumi.Output.concat("//certificatemanager.googleapis.com/", certificates.id)
    proof = {"certificate_map": link}
https = compute.TargetHttpsProxy(
    "https", name=name("llm-https"), url_map=routes.id, ssl_policy=tls.id, **proof)
compute.GlobalForwardingRule("rule", name=name("llm-https-rule"), target=https.id, port_range="443", **common)
"""
BASE: dict[str, Any] = {
    "explicit": True, "domain": "llm.example.com", "service": "llm", "regions": ["us-central1", "europe-west4"],
    "certificate": "managed", "description": "",
}  # fmt: skip
AUTOMATIC = BASE | {"explicit": False}
MAPPED = BASE | {"certificate": "map"}
OTHER_DOMAIN, OTHER_SERVICE = {"domain": "llm2.example.com"}, {"service": "llm2"}
ONE_REGION = BASE | {"regions": ["us-central1"]}
ADDED_REGION = "asia-southeast1"
DESCRIBED = {"description": "other"}
CREATED = "create (customTimeouts on a rule and a record)"
RENAMED = "service renamed (replaces services and NEGs)"
# scenario -> step -> what its program declares
SCENARIOS: dict[str, dict[str, dict[str, Any]]] = {
    "explicit names, managed certificate": {
        "preview of a create": BASE,
        "create": BASE,
        "nothing changed": BASE,
        "refresh": BASE,
        "nothing changed after refresh": BASE,
        "domain changed (certificate in use, explicit name)": BASE | OTHER_DOMAIN,
        "back": BASE,
        RENAMED: BASE | OTHER_SERVICE,
        "back again": BASE,
        "one region removed": ONE_REGION,
        "managed certificate to certificate map": ONE_REGION | {"certificate": "map"},
        "destroy": ONE_REGION | {"certificate": "map"},
    },
    "automatic names, managed certificate": {
        "create": AUTOMATIC,
        "domain changed": AUTOMATIC | OTHER_DOMAIN,
        RENAMED: AUTOMATIC | OTHER_DOMAIN | OTHER_SERVICE,
        "region added": AUTOMATIC | OTHER_DOMAIN | OTHER_SERVICE | {"regions": [*BASE["regions"], ADDED_REGION]},
        "destroy": AUTOMATIC,
    },
    "explicit names, certificate map": {
        "create": MAPPED,
        "nothing changed": MAPPED,
        "refresh": MAPPED,
        "domain changed": MAPPED | OTHER_DOMAIN,
        "destroy": MAPPED,
    },
    **{
        f"address replaced, {names} names": {
            CREATED: base,
            "preview of another description of the address": base | DESCRIBED,
            "another description of the address": base | DESCRIBED,
            "destroy": base | DESCRIBED,
        }
        for names, base in (("explicit", ONE_REGION), ("automatic", ONE_REGION | {"explicit": False}))
    },
}


def plain(requests: Iterable[str]) -> list[str]:
    """Requests without what differs from run to run: versions, the project, chosen names, numbers of changes, polls."""
    texts = (
        re.sub(r"(?:/v1|/v1beta2|/beta)?/projects/[^/]+", "/P", request)
        for request in requests
        if "/operations/" not in request
    )
    return [re.sub(r"-[0-9a-f]{7}\b", "", re.sub(r"changes/\d+", "changes/N", text)) for text in texts]


def outline(requests: list[str], *, fails: bool) -> set[tuple[str, int]]:
    """What is compared of a step's requests, with how often each change is asked for."""
    texts = plain(requests)
    if fails:
        return {(re.sub(r"us-central1|europe-west4", "R", text), 1) for text in texts if text.endswith(" 400")}
    # How much of a failed step was done before depends on time, so a later one deletes more or fewer records.
    counts = Counter(text for text in texts if ADDED_REGION not in text)
    return {(text, 1 if text.startswith("GET ") or "/changes " in text else count) for text, count in counts.items()}


class Steps:
    """The engine with a cloud, whose requests are read step by step."""

    def __init__(self, folder: Path) -> None:
        self.cloud = warm_localcloud.start_fake(folder / "cloud")
        client = Client(self.cloud)
        client.prepare()
        client.enable("compute", "dns", "certificatemanager")
        self.image = client.template()["containers"][0]["image"]
        checkout = folder / "project"
        checkout.mkdir()
        for name, text in (("Pulumi.yaml", FILE), ("Pulumi.one.yaml", "config: {}\n"), ("__main__.py", PROGRAM)):
            (checkout / name).write_text(text)
        (checkout / ".venv").symlink_to(ROOT / ".venv")
        self.engine = LocalEngine(Project(checkout), folder / "engine", control.environment(self.cloud))
        self.engine.prepare("one")
        self._log = folder / "cloud" / "logs" / "wire.jsonl"

    def take(self, command: str) -> tuple[int, list[str]]:
        """Exit code and requests of a recorded command."""
        before = len(self._log.read_text().splitlines())
        operation, *options = command.removeprefix("pulumi ").split()
        code = self.engine.run(operation, "one", options).end.code  # type: ignore[arg-type]
        lines = [json.loads(line) for line in self._log.read_text().splitlines()[before:]]
        return code, [
            request_text(line) for line in lines if re.search("compute|run/v2|dns|certificatemanager", line["path"])
        ]


_SYSTEM = {"alt", "prettyPrint", ""}


def request_text(line: dict[str, Any]) -> str:
    """A request as the recording writes it."""
    query = "&".join(part for part in unquote(line["query"]).split("&") if part.partition("=")[0] not in _SYSTEM)
    return f"{line['method']} {line['path']}{f'?{query}' if query else ''} {line['status']}"


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_steps_end_as_recorded_with_the_same_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scenario: str
) -> None:
    steps, slips = Steps(tmp_path), []
    try:
        for record in (each for each in recording("engine") if each["scenario"] == scenario):
            case = SCENARIOS[scenario][record["step"]] | {"image": steps.image}
            monkeypatch.setenv("CASE", json.dumps(case))
            code, requests = steps.take(record["command"])
            fails = record["rc"] != 0
            expected, actual = outline(record["requests"], fails=fails), outline(requests, fails=fails)
            if (code != 0) is not fails or actual != expected:
                slips.append((record["step"], code, sorted(expected - actual), sorted(actual - expected)))
        assert slips == []
    finally:
        control.stop(tmp_path / "cloud")
