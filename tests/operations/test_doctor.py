"""Check-up at the wire: every finding at once with its repair, and without a login, or an answer, the rest of them."""

import json
import re
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest

from bezel.engine.project.project import ProjectError
from bezel.operations.doctor.check import Check
from bezel.operations.doctor.doctor import Doctor, DoctorArguments, doctor
from tests.support.operations.deployed import Deployed, service_resource, state_of
from tests.support.rest.fake_google import Answer, Call

ROOT = Path(__file__).parents[2]
APIS = re.findall(r'"([A-Z0-9_]+)": "https://', (ROOT / "bezel/rest/endpoints.py").read_text())
L4 = """
config:
  gcp:project: acme
  bezel:model: gemma-4-12b-it-qat-w4a16
  bezel:accelerator: nvidia-l4
  bezel:region: us-east4
  bezel:weights:
    bucket: acme-models
"""
FILES = {"config.json": 100, "model.safetensors": 8 << 30, "tokenizer.json": 100}


class Google:
    """A project in which everything is well; `changed` has other answers by a part of the path."""

    def __init__(self, cloud: Deployed, patch: pytest.MonkeyPatch) -> None:
        self.cloud = cloud
        self.changed: dict[str, Answer] = {}
        self.files = dict(FILES)
        self.quota = 1 << 50
        self.place: dict[str, Any] = {"location": "US-EAST4", "locationType": "region"}
        self.enabled = [
            "run", "artifactregistry", "compute", "iam", "iamcredentials", "secretmanager", "storage", "logging",
            "monitoring", "cloudquotas", "cloudresourcemanager", "serviceusage", "cloudscheduler", "tpu",
        ]  # fmt: skip
        environ: Any = cloud.context.environ
        for api in APIS:
            environ[f"GOOGLE_{api}_CUSTOM_ENDPOINT"] = f"{cloud.server.url}/{api}/"
            patch.setenv(f"GOOGLE_{api}_CUSTOM_ENDPOINT", f"{cloud.server.url}/{api}/")
        shutil.copy(ROOT / "Pulumi.yaml", cloud.folder)
        self.write("one", L4)
        (cloud.folder / "state").mkdir(exist_ok=True)
        cloud.server.routes.insert(0, self._answer)

    def write(self, stack: str, text: str) -> None:
        (self.cloud.folder / f"Pulumi.{stack}.yaml").write_text(text)

    def _answer(self, call: Call) -> Answer | None:
        for part, answer in self.changed.items():
            if part in call.path:
                return answer
        if call.path.startswith("/RESOURCE_MANAGER/"):
            return Answer(json={"projectId": "acme", "lifecycleState": "ACTIVE"})
        if call.path.startswith("/SERVICE_USAGE/"):
            return Answer(
                json={"services": [{"name": f"projects/1/services/{name}.googleapis.com"} for name in self.enabled]}
            )
        if call.path.startswith("/CLOUD_QUOTAS/"):
            info = {"applicableLocations": ["us-east4"], "details": {"value": str(self.quota)}}
            return Answer(json={"dimensionsInfos": [info], "metric": "m"})
        if re.fullmatch(r"/STORAGE/b/[^/]+", call.path):
            return Answer(json=self.place)
        if call.path.startswith("/STORAGE/"):
            prefix = call.query["prefix"]
            return Answer(json={"items": [{"name": prefix + name, "size": size} for name, size in self.files.items()]})
        return None

    def doctor(self, **arguments: Any) -> Doctor:
        return doctor(self.cloud.context, DoctorArguments(**arguments))

    def of(self, area: str, **arguments: Any) -> list[Check]:
        return [each for each in self.doctor(**arguments).checks if each.area == area]


@pytest.fixture
def google(cloud: Deployed, monkeypatch: pytest.MonkeyPatch) -> Google:
    return Google(cloud, monkeypatch)


def refusal(status: int = 403) -> Answer:
    reason = {403: "PERMISSION_DENIED", 404: "NOT_FOUND"}[status]
    return Answer(status=status, json={"error": {"code": status, "message": "denied", "status": reason}})


@pytest.mark.slow
def test_where_all_is_well_nothing_is_to_be_done(google: Google) -> None:
    report = google.doctor()
    bad = [each for each in report.checks if each.state != "ok" and each.area != "tools"]
    assert bad == []
    assert (report.exit_code, report.is_logged_in, report.stacks) == (0, True, ("one",))
    areas = {"tools", "stack files", "login", "project", "APIs", "quotas", "regions", "weights"}
    assert {each.area for each in report.checks} == areas
    assert [call for call in google.cloud.server.calls if call.method != "GET"] == []


@pytest.mark.slow
def test_without_a_login_the_rest_is_checked_and_the_cloud_is_unknown(google: Google) -> None:
    environ: Any = google.cloud.context.environ
    environ.pop("GOOGLE_OAUTH_ACCESS_TOKEN")
    environ["GOOGLE_APPLICATION_CREDENTIALS"] = str(google.cloud.folder / "gone.json")
    google.write("two", L4.replace("nvidia-l4", "nvidia-l5"))
    report = google.doctor()
    states = {(each.area, each.state) for each in report.checks}
    assert {("login", "problem"), ("stack files", "ok"), ("stack files", "problem"), ("quotas", "unknown")} <= states
    assert not report.is_logged_in
    assert report.exit_code == 1
    assert all(each.repair for each in report.checks if each.state != "ok")
    assert google.cloud.server.calls == []


@pytest.mark.slow
def test_every_problem_of_every_stack_file_is_reported(google: Google) -> None:
    google.write("two", L4.replace("nvidia-l4", "nvidia-l5"))
    google.write("three", "config: [")
    files = google.of("stack files")
    assert {each.subject for each in files if each.state == "problem"} == {"two", "three"}
    assert {each.subject for each in files if each.state == "ok"} == {"one"}
    with pytest.raises(ProjectError):
        google.doctor(stack="four")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("part", "answer", "area", "state", "text"),
    [
        ("/RESOURCE_MANAGER/", refusal(), "project", "problem", "gcloud projects list"),
        ("/RESOURCE_MANAGER/", Answer(json={"lifecycleState": "DELETE_REQUESTED"}), "project", "problem", "undelete"),
        ("/SERVICE_USAGE/", refusal(), "APIs", "unknown", "roles/viewer"),
        ("/SERVICE_USAGE/", Answer(json={}), "APIs", "warning", "gcloud services enable"),
        ("/CLOUD_QUOTAS/", refusal(), "quotas", "unknown", "roles/viewer"),
        ("/CLOUD_QUOTAS/", Answer(json={}), "quotas", "unknown", "in the console"),
        ("/CLOUD_QUOTAS/", Answer(json={"dimensionsInfos": 7}), "quotas", "unknown", "repeat it"),
        ("/STORAGE/", refusal(404), "weights", "problem", "bezel weights copy one"),
        ("/STORAGE/", Answer(json={}), "weights", "problem", "bezel weights copy one"),
        ("/STORAGE/", refusal(), "weights", "unknown", "roles/viewer"),
    ],
)
def test_each_failure_is_a_finding_with_what_to_do_and_the_others_stay(
    google: Google, part: str, answer: Answer, area: str, state: str, text: str
) -> None:
    google.changed[part] = answer
    report = google.doctor()
    first = next(each for each in report.checks if each.area == area)
    assert first.state == state
    assert text in (first.repair or "")
    assert f"Repair: {first.repair}" in report.text()
    assert report.exit_code == (1 if state == "problem" else 0)
    others = {each.area for each in report.checks if each.state == "ok"}
    assert len(others) >= 6


@pytest.mark.slow
def test_a_quota_that_is_too_small_comes_with_the_request_that_raises_it(google: Google) -> None:
    google.quota = 0
    checks = google.of("quotas")
    assert {each.state for each in checks} == {"problem"}
    assert all("gcloud beta quotas preferences create --project=acme" in (each.repair or "") for each in checks)


@pytest.mark.slow
def test_weights_of_a_fallback_are_checked_beside_those_of_its_lease(google: Google) -> None:
    lease = L4.replace("-qat-w4a16", "").replace("nvidia-l4", "v6e-1")
    terms = "  bezel:vllm: {max-model-len: 8192}\n  bezel:lease: {zones: [{zone: us-east5-a}]}\n"
    google.write("one", lease + terms)
    model = "gs://acme-models/gemma-4-12B-it"
    assert {each.subject for each in google.of("weights")} == {model, "location of gs://acme-models, one"}
    fallback = "  bezel:fallback: {accelerator: nvidia-l4, model: gemma-4-12b-it-qat-w4a16}\n"
    google.write("one", lease + terms + fallback)
    subjects = {each.subject for each in google.of("weights")}
    assert subjects == {model, f"{model}-qat-w4a16-ct", "location of gs://acme-models, one"}


@pytest.mark.slow
def test_missing_weights_are_named(google: Google) -> None:
    google.files.pop("config.json")
    (check, _) = google.of("weights")
    assert "config.json is missing" in check.detail


@pytest.mark.slow
def test_an_adapter_is_looked_for_and_its_rank_compared(google: Google) -> None:
    options = "  bezel:vllm: {enable-lora: true, max-lora-rank: 16, lora-modules: [sql=/mnt/models/sql]}\n"
    google.write("one", L4 + options)
    subject = "gs://acme-models/sql"
    (check,) = [each for each in google.of("weights") if each.subject == subject]
    assert (check.state, check.detail) == (
        "problem",
        "adapter_config.json is missing; there are no weights (adapter_model.safetensors)",
    )
    google.files |= {"adapter_config.json": 99, "adapter_model.safetensors": 9}
    config = {"r": 64, "lora_alpha": 16, "target_modules": ["q_proj"]}
    google.changed["adapter_config"] = Answer(json=config)
    (check,) = [each for each in google.of("weights") if each.subject == subject]
    assert (check.state, check.detail) == ("problem", "its rank is 64, above max-lora-rank=16")
    google.changed["adapter_config"] = Answer(json=config | {"r": 8})
    (check,) = [each for each in google.of("weights") if each.subject == subject]
    assert check.state == "ok"


@pytest.mark.slow
def test_what_stacks_share_is_asked_once(google: Google) -> None:
    google.write("two", L4)
    google.doctor()
    paths = [call.path for call in google.cloud.server.calls]
    assert sorted(path for path in paths if path.startswith("/STORAGE/")) == [
        "/STORAGE/b/acme-models",
        "/STORAGE/b/acme-models/o",
    ]
    assert len([path for path in paths if path.startswith("/CLOUD_QUOTAS/")]) == 3


@pytest.mark.slow
def test_a_stack_without_a_project_says_so(google: Google) -> None:
    google.write("one", L4.replace("  gcp:project: acme\n", ""))
    checks = google.of("project")
    assert [(each.state, "GOOGLE_CLOUD_PROJECT" in (each.repair or "")) for each in checks] == [("problem", True)]


@pytest.mark.slow
def test_what_does_not_answer_is_unknown_after_the_deadline(google: Google) -> None:
    release = threading.Event()

    def hang(call: Call) -> Answer | None:
        if call.path.startswith("/STORAGE/"):
            release.wait(60)
        return None

    google.cloud.server.routes.insert(0, hang)
    try:
        for deadline in (4, 8):  # a busy machine may need more seconds for the others
            report = google.doctor(deadline=deadline)
            states = {each.area: each.state for each in report.checks}
            assert states["weights"] == "unknown"
            assert f"no answer within {deadline} s" in report.text()
            if states["project"] == "ok":
                break
    finally:
        release.set()
    assert states["project"] == "ok"


@pytest.mark.slow
def test_no_secret_is_in_a_finding(google: Google) -> None:
    secret = "hf_Pl4ntedSecretValue0123456789abcdefghij"
    google.changed["/STORAGE/"] = Answer(status=403, json={"error": {"code": 403, "message": f"token {secret}"}})
    google.changed["/SERVICE_USAGE/"] = Answer(
        status=403, json={"error": {"code": 403, "message": f"Authorization: Bearer {secret}"}}
    )
    report = google.doctor()
    assert secret not in report.text() + json.dumps(report.model_dump(mode="json"))


PIPELINE = """
[stacks]
one = "dev"
[packs.hardware_cost]
dev = "policies/hardware_cost.dev.json"
[packs.security]
dev = "policies/security.dev.json"
"""


@pytest.mark.slow
def test_deployed_stacks_are_checked_then_pipeline_stacks_and_no_example(google: Google) -> None:
    """Without a deployed stack, those of the pipeline are checked; an example only where it is named."""
    folder = google.cloud.folder
    shutil.copytree(ROOT / "policies", folder / "policies")
    (folder / "bezel.toml").write_text(PIPELINE)
    google.write("two", L4)
    shutil.copy(ROOT / "Pulumi.gce-l4x8.yaml", folder)
    report = google.doctor()
    assert (report.stacks, report.exit_code) == (("one",), 0), report.text()
    assert google.doctor(stack="gce-l4x8").exit_code == 1, "an example that is named is judged"
    state = state_of(service_resource())
    google.cloud.keep("two", state)
    google.cloud.keep("gone", state)
    report = google.doctor()
    assert (report.stacks, report.exit_code) == (("two",), 0), report.text()
    files = {each.subject: each for each in report.checks if each.area == "stack files"}
    assert (files["gone"].state, "Pulumi.gone.yaml" in files["gone"].detail) == ("warning", True)
    (folder / "bezel.toml").write_text(PIPELINE.replace("one", "once"))
    report = google.doctor()
    assert [each.subject for each in report.checks if each.state == "problem"] == ["bezel.toml"]
    assert "there is no Pulumi.once.yaml" in report.text()


LEASE = """
config:
  gcp:project: acme
  bezel:model: gemma-4-26b-a4b-it
  bezel:accelerator: v6e-4
  bezel:region: us-east5
  bezel:lease:
    zones: [{zone: europe-west4-a}, {zone: us-east5-a}]
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("there", "state"),
    [(("europe-west4-a", "us-east5-a"), "ok"), (("us-east5-a",), "warning"), ((), "problem")],
)
def test_leased_hardware_is_looked_for_in_each_zone(google: Google, there: tuple[str, ...], state: str) -> None:
    google.write("one", LEASE)
    for zone in ("europe-west4-a", "us-east5-a"):
        types = [{"type": "v6e-4"}] if zone in there else []
        google.changed[f"{zone}/acceleratorTypes"] = Answer(json={"acceleratorTypes": types})
    (check,) = google.of("regions")
    assert check.state == state


@pytest.mark.slow
def test_a_lease_needs_quota_in_one_of_its_zones_only(google: Google) -> None:
    google.write("one", LEASE)
    infos = [
        {"dimensions": {"zone": zone}, "applicableLocations": [zone], "details": {"value": value}}
        for zone, value in (("europe-west4-a", "0"), ("us-east5-a", "4"))
    ]
    google.changed["/CLOUD_QUOTAS/"] = Answer(json={"dimensionsInfos": infos})
    assert {each.state for each in google.of("quotas")} == {"ok"}
    infos[1]["details"] = {"value": "0"}
    assert {each.state for each in google.of("quotas")} == {"problem"}


@pytest.mark.slow
def test_a_salt_that_is_not_the_stacks_own_is_a_problem_with_its_repair(google: Google) -> None:
    google.write("one", L4)
    assert not [each for each in google.of("stack files") if "encryptionsalt" in each.detail]
    google.write("one", f"{L4}encryptionsalt: v1:eA==:v1:eA==:eA==\n")
    (check,) = [each for each in google.of("stack files") if "encryptionsalt" in each.detail]
    assert (check.subject, check.state) == ("one", "problem")
    assert check.repair is not None
    assert "remove the line encryptionsalt from Pulumi.one.yaml" in check.repair


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "state", "text"),
    [
        ({"location": "US-EAST4"}, "ok", "a start pays 0.00 USD"),
        ({"location": "US"}, "ok", "an unknown amount: no price of reading the multi-region us"),
        ({"location": "US", "customPlacementConfig": {"dataLocations": ["US-EAST4", "US-EAST5"]}}, "ok", "0.00 USD"),
        ({"location": "US-CENTRAL1"}, "warning", "costs 0.15 USD. Use a bucket in us-east4"),
        ({"location": "NAM4"}, "warning", "costs 0.15 USD"),
        ({"location": "EU"}, "warning", "an unknown amount (no price of a transfer from eu to us-east4 is known)"),
        ({"location": "MARS1"}, "unknown", "expected a location of the catalogue, got mars1"),
    ],
)
def test_a_bucket_far_from_the_service_is_warned_of(
    google: Google, place: dict[str, Any], state: str, text: str
) -> None:
    google.place = place
    (check,) = [each for each in google.of("weights") if "location of gs://acme-models" in each.subject]
    assert (check.state, text in check.detail) == (state, True), check
    assert (check.repair is None) is (state == "ok")


@pytest.mark.slow
def test_a_bucket_that_may_not_be_described_is_not_judged(google: Google) -> None:
    google.cloud.server.routes.insert(0, lambda call: refusal() if call.path == "/STORAGE/b/acme-models" else None)
    (check,) = [each for each in google.of("weights") if "location of" in each.subject]
    assert (check.state, "not known" in check.detail) == ("unknown", True)


@pytest.mark.slow
@pytest.mark.parametrize(("region", "state"), [("us-central1", "warning"), ("us-east4", "ok")])
def test_a_region_on_invitation_is_warned_of(google: Google, region: str, state: str) -> None:
    google.write("one", L4.replace("us-east4", region))
    (check,) = google.of("regions")
    assert (check.state, "on invitation only" in check.detail) == (state, state == "warning")
