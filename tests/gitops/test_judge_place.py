"""Code that lies in the checkout which it would judge refuses to judge it in a run of a forge, and nowhere else."""

import subprocess
from pathlib import Path

import pytest

from bezel.cli.main import main
from bezel.gitops.judge.own_code import CODE, OwnCodeError, check_place_of_code

IN_CI = {"CI": "true"}


def git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    subprocess.run(["git", *who, "-C", str(folder), *arguments], check=True, capture_output=True)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with code, an environment that git ignores, and a project below its top."""
    top = tmp_path / "change"
    for name in ("project", "bezel", ".venv"):
        (top / name).mkdir(parents=True)
        (top / name / "file").write_text("x")
    (top / ".gitignore").write_text(".venv\n")
    git(tmp_path, "init", "-q", str(top))
    git(top, "add", ".")
    git(top, "commit", "-qm", "one")
    return top


def check(top: Path, *places: Path, environ: dict[str, str] | None = None, base: str = "5a2f31c0") -> None:
    check_place_of_code(
        top / "project", "bezel ci judge dev", lambda: base, IN_CI if environ is None else environ, places
    )


@pytest.mark.parametrize("variable", ["CI", "GITHUB_ACTIONS", "GITEA_ACTIONS"])
@pytest.mark.parametrize("place", ["", "bezel", ".venv", ".venv/not/made"])
def test_code_in_judged_checkout_refuses_to_judge(checkout: Path, place: str, variable: str) -> None:
    with pytest.raises(OwnCodeError) as refused:
        check(checkout, checkout.parent, checkout / place, environ={variable: "true"})
    assert refused.value.exit_code == 2
    (problem,) = refused.value.problems
    assert problem.value == str(checkout / place)
    assert "`bezel ci judge dev` would judge, so the change would judge itself" in problem.consequence
    assert "`git worktree add --detach ../judge 5a2f31c0` and `make -C ../judge setup`" in problem.repair
    assert "`../judge/.venv/bin/bezel ci judge dev`" in problem.repair


def test_unknown_base_leaves_commit_before_in_repair(checkout: Path) -> None:
    with pytest.raises(OwnCodeError, match=r"--detach \.\./judge 'HEAD\^'"):
        check(checkout, checkout, base="")


def test_code_of_second_checkout_judges(checkout: Path) -> None:
    for place in (checkout.parent / "judge", checkout / "inside"):
        git(checkout, "worktree", "add", "-q", "--detach", str(place))
        check(checkout, place / "bezel", place)


def test_code_outside_of_git_judges(checkout: Path, tmp_path: Path) -> None:
    check(checkout, tmp_path)


@pytest.mark.parametrize("environ", [{}, {"CI": ""}, {"CI": "false"}, {"GITHUB_ACTIONS": "0"}])
def test_code_in_judged_checkout_judges_by_hand(checkout: Path, environ: dict[str, str]) -> None:
    check(checkout, checkout, environ=environ)


@pytest.mark.parametrize("command", ["preview", "judge", "deploy"])
def test_judging_command_of_own_checkout_ends_with_2(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(CODE)
    monkeypatch.setenv("CI", "true")
    assert main(["ci", command, "l4-qat"]) == 2
    assert "the change would judge itself" in capsys.readouterr().err


def test_judge_by_hand_asks_for_its_bucket(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(CODE)
    for name in ("CI", "GITHUB_ACTIONS", "GITEA_ACTIONS", "PULUMI_BACKEND_URL"):
        monkeypatch.delenv(name, raising=False)
    assert main(["ci", "judge", "l4-qat"]) == 1
    assert "PULUMI_BACKEND_URL" in capsys.readouterr().err
