"""Causes of a check-up: each is said once with every check that failed of it, and two causes are never one."""

import itertools
from typing import Any

import pytest

from bezel.engine.run.command import pulumi_cli
from bezel.operations.doctor.causes import NEEDS_LOGIN, causes_of, rows_of
from bezel.operations.doctor.check import Check, check
from bezel.operations.doctor.doctor import Doctor
from bezel_base.errors import Problem, UserError
from tests.operations.test_doctor import L4, Google
from tests.support.operations.deployed import Deployed
from tests.support.rest.fake_google import Answer

QUOTAS, RUN = "cloudquotas.googleapis.com", "run.googleapis.com"


def disabled_message(api: str, title: str = "Cloud Quotas API") -> str:
    url = f"https://console.developers.google.com/apis/api/{api}/overview?project=acme"
    return (
        f"GET {url}: 403 PERMISSION_DENIED: {title} has not been used in project acme before or it is disabled. "
        f"Enable it by visiting {url} then retry."
    )


def unknown(subject: str, detail: str, area: Any = "quotas", repair: str = "roles/viewer") -> Check:
    return check(area, subject, "unknown", detail, repair)


ENABLE = f"`gcloud services enable {QUOTAS} --project=acme`."
LISTED = check("APIs", "acme", "warning", f"not enabled: {QUOTAS}; quotas stay unknown", ENABLE)
LOGIN = check("login", "Google Cloud", "problem", "no credentials; nothing can be asked", "log in.")
NO_RESPONSE = "GET https://storage.googleapis.com/: no response (ConnectError: [Errno -2] Name or service not known)"
NO_CLI = "pulumi; the Pulumi CLI is neither in this virtual environment nor on PATH."
DENIED = (
    "GET https://x: 403 PERMISSION_DENIED: Permission 'storage.objects.list' denied on resource 'b' (or it may not)"
)
# Of each cause: every check that fails of it, and words of the one that is said.
CAUSES: dict[str, tuple[list[Check], str]] = {
    "disabled API": (
        [LISTED, *(unknown(f"stack-{n}", disabled_message(QUOTAS)) for n in range(5))],
        "gcloud services enable",
    ),
    "no login": ([LOGIN, *(unknown("Google Cloud", NEEDS_LOGIN, area) for area in ("project", "quotas"))], "log in."),
    "no network": ([unknown(f"gs://b{n}", NO_RESPONSE, "weights") for n in range(4)], "no response"),
    "no CLI": (
        [
            check("login", "Pulumi backend", "problem", NO_CLI, "run `make setup`."),
            check("tools", "pulumi", "problem", NO_CLI, "run `make setup`."),
        ],
        "make setup",
    ),
    "permission": ([unknown(f"gs://b{n}", DENIED, "weights") for n in range(3)], "storage.objects.list"),
    "deadline": ([unknown(f"s{n}", "no answer within 4 s", repair="repeat it.") for n in range(3)], "no answer"),
    "same words": ([unknown(f"s{n}", "Google states no value", repair="look.") for n in range(3)], "states no value"),
}


@pytest.mark.parametrize("name", CAUSES)
def test_a_cause_is_said_once_with_each_of_its_checks(name: str) -> None:
    checks, text = CAUSES[name]
    (cause,) = causes_of(checks)
    assert {*cause.checks} == {f"{each.area}, {each.subject}" for each in checks}
    assert "\n".join(cause.lines()).count(text) == 1
    assert cause.repair


@pytest.mark.parametrize(("one", "other"), list(itertools.combinations(CAUSES, 2)))
def test_two_causes_stay_two(one: str, other: str) -> None:
    causes = causes_of([*CAUSES[one][0], *CAUSES[other][0]])
    assert len(causes) == 2
    states = [cause.state for cause in causes]
    assert states == sorted(states, key=("problem", "warning", "unknown").index)


def test_another_api_and_another_permission_are_causes_of_their_own() -> None:
    other = DENIED.replace("objects.list", "buckets.get")
    details = (disabled_message(QUOTAS), disabled_message(RUN), DENIED, other)
    separate = causes_of([LISTED, *(unknown(name, detail) for name, detail in zip("abcd", details, strict=True))])
    assert [cause.checks for cause in separate] == [
        ("APIs, acme", "quotas, a"), ("quotas, b",), ("quotas, c",), ("quotas, d",)
    ]  # fmt: skip


def test_equal_rows_of_the_table_are_one_with_their_number() -> None:
    three = [unknown("one", f"setting {n}", "access") for n in range(3)]
    assert rows_of([LOGIN, *three]) == [("PROBLEM", "login", "Google Cloud"), ("unknown", "access", "one (3)")]


def test_what_is_ok_is_no_cause() -> None:
    assert causes_of([check("tools", "git", "ok", "found on PATH")]) == ()


def test_the_words_of_a_missing_cli_are_those_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UserError) as refused:
        pulumi_cli()
    (problem,) = refused.value.problems
    assert isinstance(problem, Problem)
    assert f"{problem.head}; {problem.consequence}" == NO_CLI


@pytest.fixture
def google(cloud: Deployed, monkeypatch: pytest.MonkeyPatch) -> Google:
    made = Google(cloud, monkeypatch)
    for number in range(3):
        made.write(f"more{number}", L4.replace("acme-models", f"acme-models-{number}"))
    return made


def causes(report: Doctor, *texts: str) -> list[int]:
    """How often each text is said, of a whole report."""
    return [report.text().count(word) for word in texts]


@pytest.mark.slow
def test_a_disabled_api_is_one_cause_for_all_that_ask_it(google: Google) -> None:
    google.enabled.remove("cloudquotas")
    error = {"code": 403, "status": "PERMISSION_DENIED", "message": disabled_message(QUOTAS).partition("DENIED: ")[2]}
    google.changed["/CLOUD_QUOTAS/"] = Answer(status=403, json={"error": error})
    report = google.doctor()
    failed = [each for each in report.checks if "has not been used" in each.detail]
    assert len(failed) >= 1
    assert causes(report, "has not been used", "--project=acme`") == [0, 1]
    assert any({"quotas, " + each.subject for each in failed} <= {*cause.checks} for cause in report.causes)


@pytest.mark.slow
def test_no_network_is_one_cause(google: Google) -> None:
    environ: Any = google.cloud.context.environ
    for name in [name for name in environ if name.endswith("_CUSTOM_ENDPOINT")]:
        environ[name] = "http://127.0.0.1:1/"
    report = google.doctor(deadline=30.0)
    unread = [cause for cause in report.causes if "no response" in cause.detail]
    assert len(unread) == 1
    assert len(unread[0].checks) >= 6


@pytest.mark.slow
def test_a_permission_that_is_missing_everywhere_is_one_cause(google: Google) -> None:
    error = {"code": 403, "message": "Permission 'storage.objects.list' denied on resource 'b'."}
    google.changed["/STORAGE/"] = Answer(status=403, json={"error": error})
    report = google.doctor()
    (cause,) = [each for each in report.causes if "storage.objects.list" in each.detail]
    assert len(cause.checks) == 8  # the folder and the location of four buckets


@pytest.mark.slow
def test_no_login_and_no_project_are_one_cause_each(google: Google) -> None:
    environ: Any = google.cloud.context.environ
    environ.pop("GOOGLE_OAUTH_ACCESS_TOKEN")
    environ["GOOGLE_APPLICATION_CREDENTIALS"] = str(google.cloud.folder / "gone.json")
    report = google.doctor()
    (cause,) = [each for each in report.causes if each.checks[0] == "login, Google Cloud"]
    assert len(cause.checks) == 6
    assert NEEDS_LOGIN not in report.text()
    environ["GOOGLE_OAUTH_ACCESS_TOKEN"] = "planted-token-0"
    for name in ("one", "more0", "more1", "more2"):
        google.write(name, L4.replace("  gcp:project: acme\n", ""))
    report = google.doctor()
    assert len([each for each in report.causes if "no Google Cloud project is set" in each.detail]) == 1
