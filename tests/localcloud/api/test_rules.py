"""Each rule of the APIs is tried by a test that exists, and the words it rests on stand in the document."""

import re
from functools import cache
from pathlib import Path

import pytest

from tests.support.localcloud.api_rules import RULES
from tests.support.record_results import check_results
from tools.traffic.discovery_data import DOCUMENTS, document

TESTS = Path(__file__).parents[1]


@cache
def functions_of(module):
    folder, _, name = module.rpartition("/")
    return set(re.findall(r"^def test_(\w+)", (TESTS / folder / f"test_{name}.py").read_text(), re.MULTILINE))


@pytest.mark.parametrize(("rule", "tests", "name", "place", "words"), RULES, ids=[row[0][:60] for row in RULES])
def test_a_rule_is_tried_and_its_evidence_stands_where_it_is_said_to(rule, tests, name, place, words):
    for test in tests:
        module, _, function = test.partition(".")
        assert function in functions_of(module), f"{rule}: no test {test}"
    if place:
        at = document(name)
        for part in place.split("/"):
            at = at[part]
        assert words in str(at)


def test_the_table_of_rules_is_the_committed_one():
    rows = [
        [rule, ", ".join(tests), f"{name}: {place.removesuffix('/description')}" if place else name]
        for rule, tests, name, place, _ in RULES
    ]
    check_results(
        "apis-rules",
        {
            "title": "Google's APIs: rules",
            "document": "fidelity",
            "order": 21,
            "about": "What holds beyond the types of single fields: each rule with its tests, over HTTP or on "
            "the function itself, and the place in the discovery document that says it (a test looks the words up).",
            "command": ".venv/bin/pytest tests/localcloud/api/test_rules.py",
            "stamp": None,
            "columns": ["rule", "tried in", "evidence"],
            "rows": rows,
            "notes": [
                {
                    "what": "Cloud Storage: an unknown field of a body",
                    "why": "refused with 400, in the older error's form; what Google answers to it is not known here",
                    "evidence": "storage.v1: schemas/Bucket has no such property",
                },
                {
                    "what": "conditions: attributes and functions beyond time, name, type and service",
                    "why": "refused with 501 when the policy is written, so that no grant is taken for given",
                    "evidence": "iam.v1: schemas/Expr is the whole Common Expression Language",
                },
                {
                    "what": "fields of secrets, repositories and services that nothing here would act upon",
                    "why": "refused with 501 and their name, or kept and shown as configuration (Cloud Run)",
                    "evidence": "the documents have them; secret_manager/api.py, artifact_registry/api.py name them",
                },
                {
                    "what": "jobs: a task that fails for good",
                    "why": "lets the other tasks run on, and the operation of the run ends with the execution, without "
                    "an error; whether Cloud Run ends the others is not known here, so a client goes by the execution",
                    "evidence": "docs: jobs, retries; bezel/localcloud/services/cloud_run/runtime/jobs.py",
                },
                {
                    "what": "jobs: times",
                    "why": "a task's timeout passes in real seconds, as traffic does; two seconds are between SIGTERM "
                    "and SIGKILL, ten on Cloud Run; a task that ran when the daemon ended begins again",
                    "evidence": "localcloud's own; bezel/localcloud/services/cloud_run/runtime/jobs.py",
                },
                {
                    "what": "machines: addresses",
                    "why": "a machine of 10.64.0.5 is shown and reached at 127.64.0.5, since only those can be "
                    "listened on without rights; rules and ranges of the firewall count in 10.x",
                    "evidence": "localcloud's own; bezel/localcloud/services/compute/vpc.py: loopback",
                },
                {
                    "what": "machines: a connection that no firewall rule allows",
                    "why": "is reset at once, where Compute Engine drops its packets and the caller waits",
                    "evidence": "docs: VPC firewall rules; bezel/localcloud/node/relay.py",
                },
                {
                    "what": "machines: the startup script",
                    "why": "runs as a process of the user who runs localcloud, not as root, below a folder of its own; "
                    "docker, gsutil and apt-get are stand-ins",
                    "evidence": "localcloud's own; bezel/localcloud/node/machine.py",
                },
                {
                    "what": "machines: stock, waits and quotas",
                    "why": "are localcloud's own, so that a rehearsal shows what can happen; nobody publishes them",
                    "evidence": "localcloud's own; bezel/localcloud/data/machines.toml",
                },
                {
                    "what": "Monitoring: metrics and filters",
                    "why": "the use of quotas only, by labels that are equal; other metrics, comparisons and "
                    "aggregations are refused with 501, so that no figure is made up",
                    "evidence": "localcloud's own; bezel/localcloud/services/monitoring/api.py",
                },
                {
                    "what": "Monitoring: when a point can be read",
                    "why": "half a minute to three minutes of the platform's time after its sample, seeded; a daemon "
                    "that starts knows of no earlier one. Google publishes no delay for this metric",
                    "evidence": "localcloud's own; bezel/localcloud/services/monitoring/quota_use.py",
                },
                {
                    "what": "Compute Engine v1",
                    "why": "is held to the beta's document, which the provider speaks: a field that only the beta has "
                    "is taken by v1 too",
                    "evidence": "compute.beta; bezel/localcloud/http/methods.py",
                },
            ],
        },
    )


def test_every_document_that_is_named_is_installed():
    assert all((DOCUMENTS / f"{name}.json").exists() for _, _, name, place, _ in RULES if place)
