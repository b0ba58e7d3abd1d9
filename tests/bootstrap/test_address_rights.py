"""Rights over an address on localcloud: the roles hold each permission that its life asks for, and no other one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from bezel.foundation import permissions
from bezel_bootstrap.deploy import ADDRESS_APIS, APIS
from bezel_localcloud.core.paths import PROJECT
from localcloud_support.balancer_programs import BALANCER, DNS, DOMAIN, GLOBAL, MANAGER, make_zone
from localcloud_support.in_process import COMPUTE, PARENT, Project
from tests.support.bootstrap.accounts import BUCKET, Accounts, settings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow

Step = tuple[str, str, Any]
PLACE = f"{PARENT}/locations/global"
PROOF, CERTIFICATE, MAP = (f"{PLACE}/{kind}" for kind in ("dnsAuthorizations/d", "certificates/c", "certificateMaps/m"))
RECORD = {"name": f"{DOMAIN}.", "type": "A", "ttl": 300, "rrdatas": ["127.250.0.2"]}
PROOF_RECORD = {"name": f"_acme-challenge.{DOMAIN}.", "type": "CNAME", "ttl": 300, "rrdatas": ["a.example."]}
MANAGED: dict[str, dict[str, Any]] = {
    "dnsAuthorizations": {"dnsAuthorizationId": "d", "domain": DOMAIN},
    "certificates": {"certificateId": "c", "managed": {"domains": [DOMAIN], "dnsAuthorizations": [PROOF]}},
    "certificateMaps": {"certificateMapId": "m"},
    "certificateMaps/m/certificateMapEntries": {
        "certificateMapEntryId": "e", "hostname": DOMAIN, "certificates": [CERTIFICATE]
    },
}  # fmt: skip
PARTS: dict[str, dict[str, Any]] = {
    path: {key: value for key, value in body.items() if key not in {"securityPolicy", "sslCertificates"}}
    for path, body in BALANCER.items()
    if not path.endswith(("/securityPolicies", "/sslCertificates", "/targetHttpProxies"))
}
PARTS["global/targetHttpsProxies"]["certificateMap"] = f"//certificatemanager.googleapis.com/{MAP}"
PROXY = f"{COMPUTE}/global/targetHttpsProxies/https"
# What a change of the address sends, by what the provider calls it; a fingerprint is read before.
CHANGES: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("PATCH", f"{MANAGER}/dnsAuthorizations/d?updateMask=labels", {"labels": {"a": "b"}}),
    ("PATCH", f"{MANAGER}/certificates/c?updateMask=labels", {"labels": {"a": "b"}}),
    ("PATCH", f"{MANAGER}/certificateMaps/m?updateMask=labels", {"labels": {"a": "b"}}),
    ("PATCH", f"{MANAGER}/certificateMaps/m/certificateMapEntries/e?updateMask=labels", {"labels": {"a": "b"}}),
    ("PUT", f"{COMPUTE}/global/backendServices/be", PARTS["global/backendServices"] | {"timeoutSec": 31}),
    ("PUT", f"{COMPUTE}/global/urlMaps/map", PARTS["global/urlMaps"] | {"description": "d"}),
    ("PATCH", f"{COMPUTE}/global/sslPolicies/tls", {"minTlsVersion": "TLS_1_2", "profile": "MODERN"}),
    ("POST", f"{COMPUTE}/global/addresses/ip/setLabels", {"labels": {"a": "c"}}),
    ("POST", f"{COMPUTE}/global/forwardingRules/rule/setLabels", {"labels": {"a": "c"}}),
    ("POST", f"{COMPUTE}/global/forwardingRules/rule/setTarget", {"target": f"{GLOBAL}/targetHttpsProxies/https"}),
    (
        "POST",
        f"{PROXY}/setCertificateMap",
        {"certificateMap": PARTS["global/targetHttpsProxies"]["certificateMap"]},
    ),
    ("POST", f"{PROXY}/setSslPolicy", {"sslPolicy": f"{GLOBAL}/sslPolicies/tls"}),
    ("POST", PROXY.replace("/global/", "/") + "/setUrlMap", {"urlMap": f"{GLOBAL}/urlMaps/map"}),
)
CHANGE = f"{DNS}/acme/changes"


def making() -> list[Step]:
    """Requests that make an address, in the provider's order, with a record that replaces another one."""
    steps: list[Step] = []
    for path, body in MANAGED.items():
        id_name = next(key for key in body if key.endswith("Id"))
        sent = {key: value for key, value in body.items() if key != id_name}
        steps.append(("POST", f"{MANAGER}/{path}?{id_name}={body[id_name]}", sent))
    steps += [("POST", f"{COMPUTE}/{path}", body) for path, body in PARTS.items()]
    steps.append(("POST", CHANGE, {"additions": [RECORD, PROOF_RECORD]}))
    return [*steps, ("POST", CHANGE, {"deletions": [RECORD], "additions": [RECORD | {"ttl": 60}]})]


def items() -> list[str]:
    """The paths of the parts, from the first that is made to the last."""
    paths = [
        f"{MANAGER}/{path}/{body[next(key for key in body if key.endswith('Id'))]}" for path, body in MANAGED.items()
    ]
    return [*paths, *(f"{COMPUTE}/{path}/{body['name']}" for path, body in PARTS.items())]


def reading() -> list[Step]:
    """Requests that read what there is, and those of a preview that look whether the domain is free."""
    looked_up = (f"{DNS}/acme", f"{DNS}/acme/rrsets", f"{MANAGER}/certificates")
    return [("GET", path, None) for path in (*items(), *looked_up)]


def deleting() -> list[Step]:
    """Requests that delete it: what nothing uses first."""
    records = [RECORD | {"ttl": 60}, PROOF_RECORD]
    compute_first = [*reversed(items()[len(MANAGED) :]), *reversed(items()[: len(MANAGED)])]
    return [("POST", CHANGE, {"deletions": records}), *(("DELETE", item, None) for item in compute_first)]


@pytest.fixture(scope="module")
def foundation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Project, Accounts]]:
    """A project with a zone, and the accounts of a foundation that names the domain."""
    folder: Path = tmp_path_factory.mktemp("rights")
    project = Project(folder / "cloud")
    for api in (*APIS, *ADDRESS_APIS):
        project.cloud.store.put("api", api, {"state": "ENABLED"})
    body = {"name": BUCKET, "iamConfiguration": {"uniformBucketLevelAccess": {"enabled": True}}}
    project.ok("POST", "/storage/v1/b", body, project=PROJECT)
    make_zone(project)
    accounts = Accounts(lambda verb, path, body: send(project, (verb, path, body)).json(), settings(domains=(DOMAIN,)))
    accounts.make()
    yield project, accounts
    project.close()


def send(project: Project, step: Step, token: str = "") -> Any:
    """The answer to a request with a query in its path, and with the fingerprint of what it changes."""
    verb, path, body = step
    path, _, query = path.partition("?")
    owner, project.token = project.token, token or project.token
    try:
        if verb in {"PUT", "PATCH"} and path.startswith(COMPUTE):
            body = body | {"fingerprint": project.call("GET", path).json().get("fingerprint", "")}
        if path.endswith("/setLabels"):
            read = project.call("GET", path.removesuffix("/setLabels")).json()
            body = body | {"labelFingerprint": read.get("labelFingerprint", "")}
        return project.call(verb, path, body, **dict(pair.split("=", 1) for pair in query.split("&") if pair))
    finally:
        project.token = owner


def permissions_of(project: Project, account: str, since: int) -> tuple[set[str], set[str]]:
    """The permissions that an account was granted and denied since a line of the request log."""
    lines = [json.loads(line) for line in project.cloud.layout.wire_log.read_text().splitlines()[since:]]
    mine = [line for line in lines if line["caller"] == Accounts.email(account)]
    return {name for line in mine for name in line["granted"]}, {name for line in mine for name in line["denied"]}


def count_lines(project: Project) -> int:
    return len(project.cloud.layout.wire_log.read_text().splitlines())


def test_the_roles_hold_what_the_life_of_an_address_asks_for_and_no_more(foundation: tuple[Project, Accounts]) -> None:
    project, accounts = foundation
    tokens = {name: accounts.token(name) for name in ("preview", "deploy")}
    since = count_lines(project)
    for step in making():
        answer = send(project, step, tokens["deploy"])
        assert answer.is_success, (step, answer.text)
        operation = answer.json().get("selfLink") or f"/certificatemanager/v1/{answer.json().get('name')}"
        if step[1] != CHANGE:
            assert send(project, ("GET", operation, None), tokens["deploy"]).is_success, operation
    project.passes(60)
    for step in (*reading(), *CHANGES, ("GET", f"{CHANGE}/1", None)):
        assert send(project, step, tokens["deploy"]).is_success, step
    for step in (*making(), *CHANGES, *deleting()):
        answer = send(project, step, tokens["preview"])
        assert answer.status_code == 403, (step, answer.text)
    for step in reading():
        assert send(project, step, tokens["preview"]).is_success, step
    for step in deleting():
        answer = send(project, step, tokens["deploy"])
        assert answer.is_success, (step, answer.text)
    wanted = {*permissions.DEPLOY_ADDRESSES.permissions, *permissions.DEPLOY_RECORDS.permissions}
    assert permissions_of(project, "deploy", since) == (wanted, set())
    assert permissions_of(project, "preview", since)[0] == {*permissions.PREVIEW_ADDRESSES.permissions}


@pytest.mark.parametrize(
    "record",
    [
        RECORD | {"name": "www.acme.example."},
        RECORD | {"name": f"www.{DOMAIN}."},
        RECORD | {"name": f"evil-{DOMAIN}."},
        PROOF_RECORD | {"name": "_acme-challenge.acme.example."},
        RECORD | {"type": "TXT", "rrdatas": ['"v=spf1 -all"']},
    ],
)
def test_the_records_of_other_names_and_types_are_out_of_reach(
    foundation: tuple[Project, Accounts], record: dict[str, Any]
) -> None:
    project, accounts = foundation
    token = accounts.token("deploy")
    for step in (("POST", CHANGE, {"additions": [record]}), ("POST", f"{DNS}/acme/rrsets", record)):
        assert send(project, step, token).status_code == 403
    for step in (("DELETE", f"{DNS}/acme", None), ("POST", DNS, {"name": "z", "dnsName": "z.example."})):
        assert send(project, step, token).status_code == 403


def test_a_foundation_without_domains_gives_no_right_over_addresses(foundation: tuple[Project, Accounts]) -> None:
    project, accounts = foundation
    without = Accounts(accounts.ask, settings())
    token = without.token("deploy")
    without.grant("deploy")
    for step in making():
        assert send(project, step, token).status_code == 403, step
    accounts.grant("deploy")
