"""Google's verdict before a deploy: it creates nothing, names the field that is wrong, and its report has no names."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest

from bezel.operations.config.config import LATER, Config, Request
from bezel.operations.context import Context
from bezel.operations.doctor.doctor import DoctorArguments, doctor
from bezel.operations.doctor.verdict.ask import Judgement, ask
from bezel.operations.doctor.verdict.entry import HEADING
from bezel.operations.doctor.verdict.pseudonyms import Pseudonyms
from bezel.operations.doctor.verdict.questions import for_localcloud, missing_permissions, permission_questions
from bezel.operations.doctor.verdict.questions import service_question as question_of
from bezel.operations.doctor.verdict.verdict import Subject, verdict
from bezel.rest import Credentials, GoogleClient
from bezel_base.errors import WrongValueError
from bezel_localcloud import control
from bezel_localcloud.core.paths import Endpoint
from bezel_localcloud.session import Localcloud, Settings, serve_session
from tests.support.rest.fake_google import Answer as WireAnswer
from tests.support.rest.fake_google import serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.operations.deployed import Deployed

PROJECT = "secret-shop"
NAME = f"projects/{PROJECT}/locations/us-east4/services/cashier"
ACCOUNT = f"cashier-run@{PROJECT}.iam.gserviceaccount.com"
SERVICE: dict[str, Any] = {
    "name": NAME,
    "labels": {"team": "blue-whales"},
    "template": {
        "serviceAccount": ACCOUNT,
        "timeout": "3600s",
        "maxInstanceRequestConcurrency": 16,
        "nodeSelector": {"accelerator": "nvidia-l4"},
        "gpuZonalRedundancyDisabled": True,
        "scaling": {"maxInstanceCount": 1},
        "volumes": [{"name": "weights", "gcs": {"bucket": "whale-songs", "readOnly": True}}],
        "containers": [
            {
                "image": f"us-east4-docker.pkg.dev/{PROJECT}/hub/vllm:v1",
                "env": [{"name": "GREETING", "value": "ahoy"}],
                "resources": {"limits": {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1"}},
                "volumeMounts": [{"name": "weights", "mountPath": "/mnt/models"}],
            }
        ],
    },
}


def with_value(path: tuple[str | int, ...], value: Any, **more: Any) -> dict[str, Any]:
    """The service with one value changed."""
    service: Any = deepcopy(SERVICE) | more
    inside = service
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = value
    return dict(service)


CONTAINER = ("template", "containers", 0)
LIMITS = (*CONTAINER, "resources", "limits")


@pytest.fixture(scope="module")
def google(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Localcloud]:
    """A project in place of Google's."""
    apis = ("run.googleapis.com", "iam.googleapis.com", "cloudresourcemanager.googleapis.com")
    with serve_session(tmp_path_factory.mktemp("google") / "cloud", Settings(apis, project=PROJECT)) as cloud:
        yield cloud


@pytest.fixture
def client(google: Localcloud) -> Iterator[GoogleClient]:
    with GoogleClient(Credentials(environ=google.environment)) as made:
        yield made


def validate(client: GoogleClient, google: Localcloud, service: dict[str, Any]) -> Judgement:
    return ask(client, google.environment, question_of(service, LATER, exists=False, has_account=False))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("service", "named"),
    [
        (with_value((*LIMITS, "memory"), "8Gi"), "resources.limits.memory"),
        (with_value((*LIMITS, "cpu"), "2"), "resources.limits.cpu"),
        (with_value((*LIMITS, "nvidia.com/gpu"), "2"), "resources.limits.nvidia.com/gpu"),
        (with_value(("template", "maxInstanceRequestConcurrency"), 1001), "max_instance_request_concurrency"),
        (with_value(("template", "timeout"), "3601s"), "service.template.timeout"),
        (with_value(("template", "volumes"), []), "volume_mounts"),
        (with_value(("name",), NAME.replace("us-east4", "us-west2")), "node_selector.accelerator"),
        (with_value((*CONTAINER, "resources", "cpuIdle"), True), "resources.cpu_idle"),
        (with_value(("template", "executionEnvironment"), "EXECUTION_ENVIRONMENT_GEN1"), "execution_environment"),
        (with_value((*CONTAINER, "env"), [{"name": "PORT", "value": "1"}]), "containers[0].env"),
        (with_value((*CONTAINER, "startupProbe"), {"periodSeconds": 240, "failureThreshold": 30}), "failure_threshold"),
        (with_value(("template", "scaling"), {"minInstanceCount": 2, "maxInstanceCount": 1}), "min_instance_count"),
    ],
)
def test_a_service_that_google_documents_refuse_is_refused_with_its_field(
    client: GoogleClient, google: Localcloud, service: dict[str, Any], named: str
) -> None:
    answer = validate(client, google, service)
    assert answer.status == 400
    assert [field for field in answer.fields if named in field], answer


@pytest.mark.slow
def test_a_planned_service_is_accepted_and_nothing_is_created(client: GoogleClient, google: Localcloud) -> None:
    endpoint = Endpoint.read(google.directory)
    before = control.inventory(endpoint)
    answer = validate(client, google, SERVICE)
    assert (answer.status, answer.fields) == (200, ())
    assert control.inventory(endpoint) == before


def test_a_secret_of_the_deploy_itself_is_not_asked_for() -> None:
    def verdict_on(secret: str) -> tuple[dict[str, Any], tuple[str, ...]]:
        service = with_value((*CONTAINER, "volumeMounts"), [{"name": "collector", "mountPath": "/etc/rungmp"}])
        service["template"]["volumes"] = [{"name": "collector", "secret": {"secret": secret}}]
        question = question_of(service, LATER, exists=False, has_account=True)
        return dict((question.body or {})["template"]), question.left_out

    template, left_out = verdict_on("bezel-stack-cashier-collector")
    assert (template["volumes"], template["containers"][0]["volumeMounts"]) == ([], [])
    assert "template.volumes[0] (the deploy makes its secret first)" in left_out
    template, left_out = verdict_on("hf-token")
    assert (len(template["volumes"]), len(template["containers"][0]["volumeMounts"])) == (1, 1)
    assert not [path for path in left_out if "volumes" in path]


def subject(service: dict[str, Any]) -> Subject:
    request = Request(
        name="cashier",
        method="run.projects.locations.services.create",
        body=service,
        gcloud="",
        without_flag=(),
    )
    requests = Config(stack="till", requests=(request,), as_commands=False)
    return Subject("till", PROJECT, requests, (), ("whale-songs",))


@pytest.fixture
def context(google: Localcloud, tmp_path: Path) -> Context:
    return Context(tmp_path, google.environment, show=lambda _line: None)


@pytest.mark.slow
def test_both_answers_are_shown_and_written_without_names(
    client: GoogleClient, context: Context, tmp_path: Path
) -> None:
    file = tmp_path / "google-till.md"
    checks = [*verdict(context, client, subject(SERVICE), file)]
    states = {each.subject: each.state for each in checks}
    assert states["creation of the service: Google accepted, localcloud accepted"] == "ok"
    text = file.read_text()
    assert text.startswith(HEADING)
    assert "| creation of the service | accepted | accepted | same |" in text
    assert "Left out: template.serviceAccount" in text
    for name in (PROJECT, "cashier", "whale", "blue", "ahoy", "gserviceaccount", "till", "team"):
        assert name not in text, name
    assert '"bucket": "BUCKET-1"' in text


@pytest.mark.slow
def test_a_refusal_is_a_problem_with_its_field_and_repair(
    client: GoogleClient, context: Context, tmp_path: Path
) -> None:
    checks = [*verdict(context, client, subject(with_value((*LIMITS, "cpu"), "2")), tmp_path / "report.md")]
    (problem,) = [each for each in checks if each.state == "problem"]
    assert problem.subject == "creation of the service: Google refused (400), localcloud refused (400)"
    assert "resources.limits.cpu" in problem.detail
    assert "Pulumi.till.yaml" in str(problem.repair)


@pytest.mark.slow
def test_an_answer_that_localcloud_does_not_give_is_named(tmp_path: Path) -> None:
    with serving() as server:
        server.routes.append(lambda call: WireAnswer(404, {"error": {"code": 404}}) if call.method == "GET" else None)
        refusal = {"error": {"code": 400, "message": "the image of secret-shop is too old", "status": "INVALID"}}
        server.routes.append(lambda call: WireAnswer(400, refusal) if "services" in call.path else None)
        server.routes.append(lambda _call: WireAnswer(json={"permissions": []}))
        apis = ("CLOUD_RUN_V2", "RESOURCE_MANAGER", "IAM_BETA", "CLOUD_QUOTAS")
        environ = {f"GOOGLE_{api}_CUSTOM_ENDPOINT": f"{server.url}/{api}/" for api in apis}
        environ["GOOGLE_OAUTH_ACCESS_TOKEN"] = "token-of-a-test"
        made = Context(tmp_path, environ, show=lambda _line: None)
        with GoogleClient(Credentials(environ=environ)) as client:
            checks = {each.subject: each for each in verdict(made, client, subject(SERVICE), tmp_path / "report.md")}
    other = checks["creation of the service on localcloud"]
    assert (other.state, "accepts it" in other.detail, "bug report" in str(other.repair)) == ("warning", True, True)
    missing = next(each for name, each in checks.items() if name.startswith("permissions"))
    assert (missing.state, "artifactregistry.repositories.create" in missing.detail) == ("warning", True)
    assert " more, all in " in missing.detail
    assert "DIFFERS" in (text := (tmp_path / "report.md").read_text())
    assert "the image of PROJECT-1 is too old" in text


def test_a_service_that_exists_is_asked_for_as_a_change() -> None:
    pinned = with_value(("traffic",), [{"revision": "cashier-00001", "percent": 100}])
    pinned["template"]["vpcAccess"] = {"egress": "ALL_TRAFFIC"}
    question = question_of(pinned, LATER, exists=True, has_account=True)
    assert (question.method, question.path, question.left_out) == ("PATCH", NAME, ())
    assert question.params == {"validateOnly": "true"}
    assert (question.body or {})["template"]["serviceAccount"] == ACCOUNT
    local = for_localcloud(question)
    assert local.params == {"validateOnly": "true", "allowMissing": "true"}
    assert len(local.left_out) == 2
    assert {"traffic", "vpcAccess"}.isdisjoint({*(local.body or {}), *(local.body or {})["template"]})


def test_what_only_the_deploy_makes_known_is_left_out_and_named() -> None:
    service = with_value((*CONTAINER, "env", 0, "value"), LATER)
    question = question_of(service, LATER, exists=False, has_account=True)
    assert question.left_out == ("template.containers[0].env[0].value (known after the deploy)",)
    assert LATER not in str(question.body)


def test_permissions_that_are_not_granted_are_those_that_were_asked_for() -> None:
    (question,) = permission_questions(PROJECT, leases=False)
    wanted = list((question.body or {})["permissions"])
    assert missing_permissions(question, {"permissions": wanted}) == []
    assert missing_permissions(question, {"permissions": wanted[1:]}) == wanted[:1]
    assert len(permission_questions(PROJECT, leases=True)) > 1


@pytest.mark.parametrize("addresses", [True, False])
def test_permissions_over_addresses_are_asked_for_where_there_is_one(addresses: bool) -> None:
    questions = permission_questions(PROJECT, leases=False, addresses=addresses)
    wanted = {name for question in questions for name in (question.body or {})["permissions"]}
    assert ("compute.globalForwardingRules.create" in wanted) is addresses
    assert "dns.resourceRecordSets.create" not in wanted, "it is granted for single names, not on the project"


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("projects/acme/x of acme", "projects/PROJECT-1/x of PROJECT-1"),
        ("acme-models in gs://acme-models/a", "BUCKET-1 in gs://BUCKET-1/a"),
        ("a@b.example and a@b.example and c@b.example", "ACCOUNT-1 and ACCOUNT-1 and ACCOUNT-2"),
        ("projects/123456789012:undelete", "projects/PROJECT-2:undelete"),
        ("https://llm-abc-uk.a.run.app/v1", "https://HOST-1/v1"),
        ("10.1.2.3 is down", "ADDRESS-1 is down"),
        ("domain:acme.example", "domain:DOMAIN-1"),
        ("nothing of theirs", "nothing of theirs"),
    ],
)
def test_a_name_is_replaced_by_the_same_word_everywhere(text: str, hidden: str) -> None:
    assert Pseudonyms({"PROJECT": ["acme"], "BUCKET": ["acme-models"]}).text(text) == hidden


WRONG = [
    ({"ask_google": True}, "STACK = (not set)\n   Google judges the service of one stack"),
    ({"stack": "one", "verdict": "a.md"}, "--verdict = a.md\n   Google is not asked without --ask-google"),
    ({"stack": "one", "ask_google": True, "verdict": "a.txt"}, "--verdict = a.txt\n   its name does not end with .md"),
    ({"stack": "one", "ask_google": True, "verdict": "../a.md"}, "--verdict = ../a.md\n   it is outside"),
    ({"stack": "one", "ask_google": True, "verdict": "no/a.md"}, "--verdict = no/a.md\n   its folder does not exist"),
    (
        {"stack": "one", "ask_google": True, "verdict": "notes.md"},
        "--verdict = notes.md\n   another file has",
    ),
    ({"stack": "one", "ask_google": True, "verdict": "dir.md"}, "--verdict = dir.md\n   it is a folder"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG)
def test_a_report_that_cannot_be_written_is_refused_first(
    cloud: Deployed, arguments: dict[str, Any], message: str
) -> None:
    (cloud.folder / "notes.md").write_text("# Mine\n")
    (cloud.folder / "dir.md").mkdir()
    with pytest.raises(WrongValueError) as refused:
        doctor(cloud.context, DoctorArguments(**arguments))
    (problem,) = refused.value.problems
    assert str(problem).startswith(message)
    assert "Repair: " in str(problem)
    assert cloud.server.calls == []
