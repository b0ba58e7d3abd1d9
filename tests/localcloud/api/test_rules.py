"""Each rule of the APIs is tried by a test that exists, and the words it rests on stand in the document."""

import re
from functools import cache
from pathlib import Path

import pytest

from localcloud_support.discovery_documents import DOCUMENTS, document
from tests.support.localcloud.api_rules import RULES
from tests.support.record_results import check_results

ROOT = Path(__file__).parents[3]
FOLDERS = (ROOT / "packages" / "localcloud" / "tests", ROOT / "tests" / "localcloud")


@cache
def functions_of(module):
    folder, _, name = module.rpartition("/")
    files = [tests / folder / f"test_{name}.py" for tests in FOLDERS]
    text = "".join(file.read_text() for file in files if file.exists())
    return set(re.findall(r"^def test_(\w+)", text, re.MULTILINE))


@pytest.mark.slow
@pytest.mark.parametrize(("rule", "tests", "name", "place", "phrase"), RULES, ids=[row[0][:60] for row in RULES])
def test_a_rule_is_tried_and_its_evidence_stands_where_it_is_said_to(rule, tests, name, place, phrase):
    for test in tests:
        module, _, function = test.partition(".")
        assert function in functions_of(module), f"{rule}: no test {test}"
    if place:
        at = document(name)
        for part in place.split("/"):
            at = at[part]
        assert phrase in str(at)


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
            "about": "Rules beyond the types of single fields, each with its tests (over HTTP or of the function) "
            "and the place in Google's discovery document that states it (a test checks the quoted words).",
            "command": ".venv/bin/pytest tests/localcloud/api/test_rules.py",
            "stamp": None,
            "columns": ["rule", "tried in", "evidence"],
            "rows": rows,
            "notes": [
                {
                    "what": "Cloud Storage: an unknown field of a body",
                    "why": "refused with 400 in the older error format; Google's response is not known",
                    "evidence": "storage.v1: schemas/Bucket has no such property",
                },
                {
                    "what": "conditions: attributes and functions beyond time, name, type and service",
                    "why": "refused as not served when the policy is written, so that no grant is assumed",
                    "evidence": "iam.v1: schemas/Expr is the whole Common Expression Language",
                },
                {
                    "what": "fields of secrets, repositories and services without an effect on localcloud",
                    "why": "refused as not served, with their name, or stored and shown (Cloud Run)",
                    "evidence": "listed in secret_manager/api.py and artifact_registry/api.py",
                },
                {
                    "what": "several containers of an instance",
                    "why": "share no network: the collector alone reaches another one; liveness probes of those that "
                    "take no requests have no effect; the message about one that ends at its start is localcloud's",
                    "evidence": "localcloud's own; bezel_localcloud/services/cloud_run/runtime/containers",
                },
                {
                    "what": "secret volumes",
                    "why": "show the version of the instance's start; on Cloud Run each read fetches it anew. The "
                    "collector reads its configuration anew, as there",
                    "evidence": "docs: Cloud Run, secrets; bezel_localcloud/core/files/secret_folders.py",
                },
                {
                    "what": "collectors of Prometheus series",
                    "why": "leave out metrics about themselves, target_info, labels of the scope, summaries, series "
                    "without a type and retries; two scrapes are a second apart at least, whatever the clock",
                    "evidence": "localcloud's own; bezel_localcloud/services/monitoring/collector",
                },
                {
                    "what": "jobs: a task that fails for good",
                    "why": "the other tasks continue, and the run's operation ends with the execution, without an "
                    "error; whether Cloud Run ends the others is not known, so a client has to read the execution",
                    "evidence": "docs: jobs, retries; bezel_localcloud/services/cloud_run/runtime/jobs.py",
                },
                {
                    "what": "jobs: times",
                    "why": "a task's timeout is in real seconds, as for traffic; SIGKILL follows SIGTERM after five "
                    "seconds, on Cloud Run after ten; a task that ran when the daemon ended starts again",
                    "evidence": "localcloud's own; bezel_localcloud/services/cloud_run/runtime/jobs.py",
                },
                {
                    "what": "machines: addresses",
                    "why": "a machine with the address 10.64.0.5 is shown and reached at 127.64.0.5, since a process "
                    "without privileges can listen only there; firewall rules and ranges use 10.x",
                    "evidence": "localcloud's own; bezel_localcloud/services/compute/vpc.py: loopback",
                },
                {
                    "what": "machines: a connection that no firewall rule allows",
                    "why": "is reset at once; Compute Engine drops its packets, and the caller waits",
                    "evidence": "docs: VPC firewall rules; packages/localcloud/bezel_localcloud/node/relay.py",
                },
                {
                    "what": "machines: the startup script",
                    "why": "runs as localcloud's user, not as root, in a folder of its own; "
                    "docker, gsutil and apt-get are stand-ins",
                    "evidence": "localcloud's own; packages/localcloud/bezel_localcloud/node/machine.py",
                },
                {
                    "what": "machines: stock, waits and quotas",
                    "why": "are localcloud's own, so that a rehearsal shows what can happen; Google publishes none",
                    "evidence": "localcloud's own; packages/localcloud/bezel_localcloud/data/machines.toml",
                },
                {
                    "what": "Monitoring: metrics and filters",
                    "why": "only the use of quotas, and instances and billable time of Cloud Run services, filtered by "
                    "equal labels, with ALIGN_SUM at most; anything else is refused instead of made up",
                    "evidence": "localcloud's own; bezel_localcloud/services/monitoring/api.py",
                },
                {
                    "what": "Monitoring: delay until a point can be read",
                    "why": "30 s to 3 minutes of the platform's time after its sample, seeded; a restarted daemon has "
                    "no earlier points. Google does not publish the delay of this metric",
                    "evidence": "localcloud's own; bezel_localcloud/services/monitoring/quota_use.py",
                },
                {
                    "what": "Monitoring: billable time of Cloud Run",
                    "why": "is the life of instances that are billed by instance, as all with a GPU are; those that "
                    "are billed by request have none. A revision whose instances all ended keeps being sampled with 0; "
                    "Google does not publish when it stops",
                    "evidence": "localcloud's own; bezel_localcloud/services/monitoring/service_use.py",
                },
                {
                    "what": "Monitoring: alert policies, uptime checks and dashboards",
                    "why": "are stored and shown: no condition is evaluated, no check is sent, nothing is drawn. A "
                    "metric of a Google service that the catalogue does not list is refused as not served",
                    "evidence": "localcloud's own; bezel_localcloud/services/monitoring/conditions.py",
                },
                {
                    "what": "Scheduler: time",
                    "why": "the time until a job's next run passes as fast as the platform's waits; missed runs become "
                    "one when a daemon starts",
                    "evidence": "localcloud's own; bezel_localcloud/services/scheduler/jobs.py",
                },
                {
                    "what": "Scheduler: targets",
                    "why": "are on this machine: Google's addresses of served APIs lead to localcloud, other ones are "
                    "not called and the job fails",
                    "evidence": "localcloud's own; bezel_localcloud/services/scheduler/dispatcher.py",
                },
                {
                    "what": "load balancers: addresses",
                    "why": "are on the loopback interface (127.250.0.0/16), so that a client on this computer reaches "
                    "them; IPv6 addresses are of the range for documentation and lead nowhere",
                    "evidence": "localcloud's own; bezel_localcloud/services/load_balancing/api.py",
                },
                {
                    "what": "load balancers: certificates",
                    "why": "are ACTIVE 15 minutes of the platform's time after the record is right, and show a missing "
                    "record after 15 minutes; Google says up to 60 minutes. Only records of the project's own public "
                    "zones count",
                    "evidence": "localcloud's own; bezel_localcloud/services/load_balancing/certificates.py",
                },
                {
                    "what": "load balancers: traffic",
                    "why": "distance is by the map, not by Google's network, from one place that a setting names; "
                    "traffic returns to a region over a minute of the platform's time, which Google does not publish. "
                    "Left out: HTTP/2, Cloud Armor, SSL policies, request logs, retries without a retry policy",
                    "evidence": "localcloud's own; bezel_localcloud/services/balancer/region_choice.py",
                },
                {
                    "what": "Compute Engine v1",
                    "why": "is checked against the beta's document, which the provider uses: v1 accepts fields that "
                    "only the beta has",
                    "evidence": "compute.beta; packages/localcloud/bezel_localcloud/http/methods.py",
                },
            ],
        },
    )


def test_every_document_that_is_named_is_installed():
    assert all((DOCUMENTS / f"{name}.json").exists() for _, _, name, place, _ in RULES if place)
