"""An address under the real engine by the account of the pipeline: its roles hold what all of its life asks for."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from bezel.engine.local.engine import LocalEngine
from bezel_bootstrap.deploy import ADDRESS_APIS, APIS
from bezel_localcloud import control
from bezel_localcloud.core.paths import PROJECT
from localcloud_support.balancer_programs import DNS
from localcloud_support.client import Client
from tests.support.bootstrap.accounts import BUCKET, Accounts, settings
from tests.support.components.component_life import life_of

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.long
FILE = "name: address\nruntime:\n  name: python\n  options:\n    virtualenv: .venv\n"
PROGRAM = """
import json
import os
from bezel_components.global_address import GlobalAddress, GlobalAddressArgs

where = os.environ["GOOGLE_CLOUD_PROJECT"]
GlobalAddress("address", GlobalAddressArgs(project=where, zone="acme", **json.loads(os.environ["ADDRESS"])))
"""
DOMAINS = ("llm.acme.example", "chat.acme.example")
BASE: dict[str, Any] = {"domain": DOMAINS[0], "services": {"us-east4": "chat"}, "labels": {"a": "b"}}
OTHERS = {"domain": DOMAINS[1], "services": {"us-east4": "answers", "europe-west4": "answers"}, "labels": {"a": "c"}}
FOREIGN = BASE | {"domain": "www.acme.example"}


def accounts_in(client: Client) -> Accounts:
    """The pipeline's accounts in a cloud with a zone."""
    client.enable(*(api.removesuffix(".googleapis.com") for api in (*APIS, *ADDRESS_APIS)))
    client.post("/storage/v1/b", {"name": BUCKET}, project=PROJECT)
    client.post(DNS, {"name": "acme", "dnsName": "acme.example.", "description": "d"})

    def ask(verb: str, path: str, body: dict[str, Any] | None) -> dict[str, Any]:
        answer = client.http.request(verb, path, **({} if body is None else {"json": body}))
        assert answer.status_code == 200, answer.text
        content: dict[str, Any] = answer.json()
        return content

    accounts = Accounts(ask, settings(domains=DOMAINS))
    accounts.make()
    return accounts


def test_the_pipeline_makes_changes_and_deletes_an_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with life_of(tmp_path, FILE, PROGRAM) as (owner, cloud):
        token = accounts_in(Client(cloud)).token("deploy")
        variables = control.environment(cloud) | {"GOOGLE_OAUTH_ACCESS_TOKEN": token}
        engine = LocalEngine(owner.project, tmp_path / "engine", variables)
        for arguments in (BASE, OTHERS):
            monkeypatch.setenv("ADDRESS", json.dumps(arguments))
            assert engine.run("up", "one", ("--yes", "--skip-preview")).end.code == 0
            assert engine.run("refresh", "one", ("--preview-only", "--expect-no-changes")).end.code == 0
        monkeypatch.setenv("ADDRESS", json.dumps(FOREIGN))
        assert engine.run("up", "one", ("--yes", "--skip-preview")).end.code != 0
        assert engine.run("destroy", "one", ("--yes", "--skip-preview")).end.code == 0
        lines = [json.loads(line) for line in (tmp_path / "cloud" / "logs" / "wire.jsonl").read_text().splitlines()]
        denied = [name for line in lines if line["caller"] == Accounts.email("deploy") for name in line["denied"]]
        assert set(denied) == {"dns.resourceRecordSets.create"}, "of a name that the foundation does not know"
