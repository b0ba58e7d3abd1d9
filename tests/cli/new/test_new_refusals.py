"""Wrong inputs of `bezel new` and `bezel new stack`: each named with its repair, and nothing is left."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from bezel.cli.main import main
from bezel.cli.new.choice import choose
from bezel_base.errors import WrongValueError
from bezel_catalog import models

ROOT = Path(__file__).parents[3]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
SECONDS = 60


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "wheels").mkdir()
    (tmp_path / "wheels" / f"bezel-{VERSION}-py3-none-any.whl").touch()
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "full").mkdir()
    (folder / "full" / "notes.txt").write_text("mine")
    (folder / "file").write_text("mine")
    (folder / "empty").mkdir()
    (folder / "link").symlink_to("empty")
    (folder / "outer" / "inner").mkdir(parents=True)
    (folder / "outer" / "Pulumi.yaml").write_text("name: outer\nruntime: python\n")
    (folder / "repository").mkdir()
    subprocess.run(["git", "init", "--quiet", folder / "repository"], check=True, timeout=SECONDS)
    monkeypatch.chdir(folder)
    return folder


def contents(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if ".git" not in path.parts)


REFUSED = {
    "no name": ([], ("NAME = (not set)", "has no default", "bezel new chat")),
    "a name that no project has": (["my chat"], ("NAME = my chat", "at most 100 letters", "e.g. my-chat")),
    "a name of another alphabet": (["чат"], ("at most 100 letters", "choose another name")),
    "a long name": (["x" * 101], ("at most 100 letters",)),
    "an option's name": (["--", "-x"], ("at most 100 letters", "e.g. x")),
    "two names": (["chat", "bot"], ("NAME = chat bot", "one name", "`bezel new chat`")),
    "a path": (["full/chat"], ("NAME = full/chat", "it is a path", "full first, then `bezel new chat`")),
    "a path above": (["../chat"], ("it is a path",)),
    "a folder with files": (["full"], ("holds notes.txt", "nothing is overwritten", "an empty folder")),
    "a file in the way": (["file"], ("there is a file of this name",)),
    "a link": (["link"], ("it is a link to empty", "remove the link")),
    "an unknown model": (["chat", "--model", "gemma-4-12b-it-qat"], ("--model", "gemma-4-12b-it-qat-w4a16")),
    "a part of a model's name": (
        ["chat", "--model", "gemma-4-12b-qat"],
        ("--model = gemma-4-12b-qat", "did you mean gemma-4-12b-it-qat-w4a16?"),
    ),
    "another maker's model": (["chat", "--model", "llama"], ("--model = llama", "no such name", "choose one of gemma")),
    "an unknown accelerator": (["chat", "--accelerator", "nvidia-l5"], ("--accelerator = nvidia-l5", "nvidia-l4")),
    "a model that does not fit": (
        ["chat", "--model", "gemma-4-31b-it", "--accelerator", "nvidia-l4"],
        ("cannot be served on nvidia-l4", "--model = gemma-4-31b-it", "57.74 GiB", "nvidia-rtx-pro-6000"),
    ),
    "a region without the accelerator": (
        ["chat", "--accelerator", "nvidia-l4", "--region", "us-central1"],
        ("--region = us-central1", "nvidia-l4", "us-east4"),
    ),
    "a region without a machine for the model": (
        ["chat", "--region", "us-east5"],
        ("served in us-east5", "--region = us-east5", "it has v6e-1, v6e-4, v6e-8, none", "us-east4 (nvidia-l4"),
    ),
    "an unknown region": (
        ["chat", "--region", "us-east9"],
        ("--region = us-east9", "not known to have an accelerator", "can be served: europe-west1 (nvidia-l4, 1.0"),
    ),
    "a misspelt region": (["chat", "--region", "us-esat4"], ("can be served: us-east4 (nvidia-l4",)),
    "a region without any price": (
        ["chat", "--region", "asia-southeast1"],
        ("nvidia-l4, nvidia-rtx-pro-6000, none of which", "at a known price", "Missing price row"),
    ),
    "a region and a machine that is too small": (
        ["chat", "--model", "gemma-4-31b-it", "--accelerator", "nvidia-l4", "--region", "us-east5"],
        ("2 problems", "--region = us-east5", "leave it out, or choose one of", "--model = gemma-4-31b", "57.74 GiB"),
    ),
    "a region without a price": (
        ["chat", "--accelerator", "nvidia-l4", "--region", "asia-southeast1"],
        ("--region = asia-southeast1", "its price is unknown", "choose a priced region"),
    ),
    "a folder without wheels": (["chat", "--packages", "empty"], ("--packages", "no wheel of bezel", "wheel.py")),
    "an address of another kind": (["chat", "--packages", "ftp://x/y"], ("--packages", "http and https")),
    "an environment": (
        ["chat", "--environment", "prod"],
        ("--environment = prod", "environments dev and prod", "bezel new stack NAME --from STACK --environment prod"),
    ),
    "a project without a source": (["chat", "--project", "acme-llm"], ("--project = acme-llm", "add --from")),
    "a stack outside of a project": (["stack", "prod", "--from", "dev"], ("there is no Pulumi.yaml",)),
    "a stack without a name": (["stack"], ("NAME = (not set)", "--from STACK", "`bezel new ./stack`")),
    "a stack with two names": (["stack", "a", "b", "--from", "dev"], ("one name",)),
    "a stack with a path": (["stack", "../prod", "--from", "dev"], ("at most 100 letters",)),
    "a stack of two": (["stack", "a", "--from", "dev", "--from", "prod"], ("--from = dev, prod", "made of one")),
    "a stack with a model": (["stack", "a", "--from", "dev", "--model", "x"], ("--model = x", "leave it out")),
}


@pytest.mark.parametrize(("arguments", "phrases"), REFUSED.values(), ids=REFUSED)
def test_a_wrong_input_is_named_and_leaves_nothing(
    here: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], phrases: tuple[str, ...]
) -> None:
    before = contents(here)
    packages = [] if "--packages" in arguments or "stack" in arguments else ["--packages", "../wheels"]
    code = main(["new", "--yes", *packages, *arguments])
    error = capsys.readouterr().err
    assert code == (1 if "no Pulumi.yaml" in phrases[0] else 2), error
    for phrase in (*phrases, "Repair: "):
        assert phrase in error, error
    assert contents(here) == before


@pytest.mark.wide_except("gemma-4-12b-it-qat-w4a16", "gemma-4-31b-it")
@pytest.mark.parametrize("model", models())
def test_a_region_that_a_refusal_names_is_taken(model: str) -> None:
    """Each model of the catalogue in a region that nothing has: each region of the repair, with its accelerator."""
    with pytest.raises(WrongValueError) as caught:
        choose(model, "", "us-east9", {})
    (problem,) = caught.value.problems
    places = re.findall(r"([a-z]+-[a-z]+\d) \(([a-z0-9-]+),", str(problem))
    assert places
    for region, accelerator in places:
        assert choose(model, "", region, {}).accelerator == accelerator


@pytest.mark.parametrize(
    ("folder", "phrase"),
    [("outer/inner", "it lies in the Pulumi project"), ("repository", "it lies in the git repository")],
)
def test_a_project_within_another_one_is_refused(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: str, phrase: str
) -> None:
    monkeypatch.chdir(here / folder)
    before = contents(here)
    assert main(["new", "chat", "--yes", "--packages", str(here.parent / "wheels")]) == 2
    assert phrase in capsys.readouterr().err
    assert contents(here) == before


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="another user's rights are tried by root alone")
def test_a_folder_without_write_permission_is_named(here: Path) -> None:
    """As another user, since root may write everywhere."""
    here.chmod(0o555)
    program = (
        "import os, sys; os.setegid(65534); os.seteuid(65534)\n"
        "from pathlib import Path\n"
        "from bezel.cli.new.folder import make_folder\n"
        "from bezel_base.errors import UserError\n"
        "try: make_folder(Path(sys.argv[1]), {'a': 'b'}, with_git=False)\n"
        "except UserError as error: print(error.exit_code, error)\n"
    )
    for parent in (here, *here.parents):
        if parent.stat().st_uid == os.geteuid() and parent != Path("/"):
            parent.chmod(parent.stat().st_mode | 0o011)
    ended = subprocess.run(
        [sys.executable, "-c", program, here / "chat"], capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert "Permission denied" in ended.stdout, ended.stderr
    assert ended.stdout.startswith("2 ")
    assert not (here / "chat").exists()
