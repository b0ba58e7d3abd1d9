"""A program in YAML that is refused: by policy packs, the package, a check or the platform; shown by the engine."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from bezel.engine.project.installed_packs import installed_pack
from bezel_localcloud import control_client
from bezel_localcloud.core.paths import Endpoint
from tests.support.plugin.program import Program, go_program
from tests.support.plugin.yaml_program import PARTS, SERVICE

pytestmark = [pytest.mark.wide, pytest.mark.timeout(900)]
SERVICE_ACCOUNT = "serviceAccount: ${runtime.email}"
FOREIGN_ACCOUNT = """  theirs:
    type: gcp:serviceaccount:Account
    properties: {project: bezel-local, accountId: theirs}
outputs:"""
FOREIGN_BUCKET = """  theirs:
    type: gcp:storage:Bucket
    properties: {project: bezel-local, name: their-models, location: US-EAST4}
outputs:"""


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    folder = tmp_path_factory.mktemp("yaml")
    made = Program.make(folder, {"Pulumi.yaml": PARTS}, go_program("pulumi-language-yaml"))
    yield made
    made.stop()


@pytest.fixture
def program(cloud: Program) -> Iterator[Program]:
    text = (cloud.folder / "Pulumi.yaml").read_text()
    yield cloud
    (cloud.folder / "Pulumi.yaml").write_text(text)


@pytest.mark.parametrize(("text", "service"), [(PARTS, "service-service"), (SERVICE, "chat-service-service")])
def test_the_packs_judge_and_price_the_package(program: Program, text: str, service: str) -> None:
    """The service is a child of a component that another process makes."""
    program.write("Pulumi.yaml", text)
    pack = installed_pack("hardware_cost")
    limits = json.loads(Path(f"{pack}.dev.json").read_text())
    lower, none = program.folder / "limits.json", program.folder / "none.json"
    lower.write_text(json.dumps(limits | {"hourly-ceiling": {"limits": {"dev": 0.1}}}))
    none.write_text("{}")
    packs = {str(pack): lower, str(installed_pack("price")): none}
    options = [word for name, file in packs.items() for word in ("--policy-pack", name, "--policy-pack-config", file)]
    refused = program.run("preview", *map(str, options))
    assert refused.code != 0
    assert "[mandatory]  hourly-ceiling" in refused.text, refused.text
    assert f"(gcp:cloudrunv2:Service: {service})" in refused.text
    assert "1.05 USD/h" in refused.text, refused.text


def test_wrong_settings_are_refused_in_a_preview(program: Program) -> None:
    program.write("Pulumi.yaml", SERVICE.replace("max-model-len", "max-model-length").replace("us-east4", "mars-1"))
    refused = program.run("preview")
    assert refused.code != 0
    assert "VllmService chat cannot be planned: 2 problems." in refused.text, refused.text
    assert "region = mars-1" in refused.text
    assert "Repair: did you mean max-model-len?" in refused.text
    assert "Traceback" not in refused.text


def test_an_unknown_label_of_a_service_is_refused_in_a_preview(program: Program) -> None:
    program.write("Pulumi.yaml", SERVICE)
    program.change("Pulumi.yaml", "environment: dev", 'labels: {owner: "${theirs.uniqueId}"}')
    program.change("Pulumi.yaml", "outputs:", FOREIGN_ACCOUNT)
    refused = program.run("preview")
    assert refused.code != 0
    assert "chat: labels.owner = (not known yet)" in refused.text, refused.text
    assert "Traceback" not in refused.text


def test_an_unknown_bucket_of_a_service_is_planned(program: Program) -> None:
    program.write("Pulumi.yaml", SERVICE)
    program.change("Pulumi.yaml", "bucket: shop-models", 'bucket: "${theirs.id}"')
    program.change("Pulumi.yaml", "outputs:", FOREIGN_BUCKET)
    planned = program.run("preview")
    assert planned.code == 0, planned.text
    assert "known only after the deploy, so neither its location nor the price of reading" in planned.text


def test_an_unknown_account_is_refused_in_a_preview(program: Program) -> None:
    program.change("Pulumi.yaml", SERVICE_ACCOUNT, "serviceAccount: ${theirs.uniqueId}")
    program.change("Pulumi.yaml", "outputs:", FOREIGN_ACCOUNT)
    refused = program.run("preview")
    assert refused.code != 0
    assert "service: serviceAccount = (not known yet)" in refused.text, refused.text
    assert "so no policy could judge it in a preview." in refused.text
    assert "Repair: write the value itself, or an output that is known in previews." in refused.text
    assert "Traceback" not in refused.text


def test_a_missing_model_is_refused_in_a_preview(program: Program) -> None:
    program.change("Pulumi.yaml", "path: gemma\n", "path: gemmma\n")
    refused = program.run("preview")
    assert refused.code != 0
    assert "gs://shop-models/gemmma" in refused.text, refused.text
    assert "bezel weights copy" in refused.text
    assert "Traceback" not in refused.text


def test_a_failed_start_of_a_service_is_explained(program: Program) -> None:
    """By the error hook, which the engine calls back in the package's process."""
    program.write("Pulumi.yaml", SERVICE)
    endpoint = Endpoint.read(program.cloud)
    control_client.add_fault(endpoint, "disk-full", {})
    failed = program.run("up", "--yes", "--skip-preview")
    control_client.clear_faults(endpoint)
    ended = program.run("destroy", "--yes", "--skip-preview")
    assert failed.code != 0
    assert "cause: the container's disk is full" in failed.text, failed.text
    assert "Repair: raise resources.memory" in failed.text
    assert "bezel:smoke:HealthCheck" not in failed.text
    assert ended.code == 0, ended.text
