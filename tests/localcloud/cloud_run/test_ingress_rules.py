"""Every rule of the front has tests that hold it and tests that fail without it; the table of them is kept current."""

import re
import tomllib
from pathlib import Path

from tests.support.record_results import check_results

HERE = Path(__file__).parent
TESTS = Path(__file__).parents[3] / "packages" / "localcloud" / "tests" / "cloud_run"
COMMAND = ".venv/bin/pytest tests/localcloud/cloud_run/test_ingress_rules.py"
LEFT_OUT = [
    {
        "what": "session affinity, VPC access, HTTP/2 end to end, gRPC probes, headers of probes",
        "why": "no stack uses them; the API accepts the fields, and they have no effect",
        "evidence": "run v2 discovery: RevisionTemplate.sessionAffinity, vpcAccess, Probe.grpc, HTTPGetAction",
    },
    {
        "what": "TLS, and names for addresses",
        "why": "a service and each tag have a loopback port instead of a name below run.app",
        "evidence": "decision 0004",
    },
    {
        "what": "instances beyond the maximum for a moment, and scaling by CPU",
        "why": "Cloud Run may do both; localcloud keeps the maximum, and only requests start instances",
        "evidence": "docs: about instance autoscaling",
    },
    {
        "what": "ten seconds between SIGTERM and SIGKILL",
        "why": "five seconds here, so that ending instances do not delay a run",
        "evidence": "docs: container contract, shutdown",
    },
]


def known_tests() -> set[str]:
    files = [*TESTS.parent.rglob("test_*.py"), *HERE.parent.rglob("test_*.py")]
    return {name for file in files for name in re.findall(r"^def (test_\w+)", file.read_text(), re.MULTILINE)}


def rules() -> list[dict]:
    return tomllib.loads((HERE / "ingress_rules.toml").read_text())["rule"]


def test_every_rule_names_tests_that_are_there_a_twin_and_its_evidence():
    names = known_tests()
    for rule in rules():
        assert set(rule["holds"]) | set(rule["twins"]) <= names, rule["rule"]
        assert rule["holds"], rule["rule"]
        assert rule["twins"], rule["rule"]
        assert re.match(r"docs:|run v2 discovery:|own:|measured|public|GoogleCloud", rule["evidence"]), rule["rule"]


def test_every_test_of_the_front_holds_a_rule():
    named = {name for rule in rules() for name in (*rule["holds"], *rule["twins"])}
    for part in ("identity", "traffic", "instances"):
        text = (TESTS / f"test_ingress_{part}.py").read_text()
        assert set(re.findall(r"^def (test_\w+)", text, re.MULTILINE)) <= named


def test_the_table_of_the_fronts_rules_is_current():
    rows = [
        [rule["rule"], ", ".join(dict.fromkeys(rule["holds"] + rule["twins"])), rule["evidence"]] for rule in rules()
    ]
    table = {
        "title": "Cloud Run's ingress: rules",
        "document": "fidelity",
        "order": 40,
        "about": "Rules of the ingress between a caller and a container, each with its tests, a negative one among "
        "them, and its source.",
        "command": COMMAND,
        "stamp": None,
        "columns": ["rule", "tests", "evidence"],
        "rows": rows,
        "notes": LEFT_OUT,
    }
    check_results("front-rules", table)
