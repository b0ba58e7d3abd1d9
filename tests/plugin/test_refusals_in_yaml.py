"""A program in YAML that is refused: by policy packs, by the package, and by a check; shown by the engine."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from bezel.engine.project.installed_packs import installed_pack
from tests.support.plugin.program import Program, go_program
from tests.support.plugin.yaml_program import PARTS

pytestmark = [pytest.mark.wide, pytest.mark.timeout(900)]
SERVICE_ACCOUNT = "serviceAccount: ${runtime.email}"
FOREIGN_ACCOUNT = """  theirs:
    type: gcp:serviceaccount:Account
    properties: {project: bezel-local, accountId: theirs}
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


def test_the_packs_judge_and_price_the_package(program: Program) -> None:
    """The service is a child of a component that another process makes."""
    pack = installed_pack("hardware_cost")
    limits = json.loads(Path(f"{pack}.dev.json").read_text())
    lower = program.folder / "limits.json"
    lower.write_text(json.dumps(limits | {"hourly-ceiling": {"limits": {"dev": 0.1}}}))
    refused = program.run("preview", "--policy-pack", str(pack), "--policy-pack-config", str(lower))
    assert refused.code != 0
    assert "[mandatory]  hourly-ceiling" in refused.text, refused.text
    assert "service-service" in refused.text
    priced = program.run("preview", "--policy-pack", str(installed_pack("price")))
    assert priced.code == 0, priced.text
    assert "1.05 USD/h" in priced.text, priced.text


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
