"""Documents with a text that no encoding takes: the pull request's comment is written all the same."""

import json
from pathlib import Path

import pytest

from bezel.cli.main import main
from bezel.engine.changes.report import ChangeReport
from bezel.gitops.comment.comment import comment

HALF = "a\ud800b\udfff"
WHOLE = "a\ufffdb\ufffd"


def documents(folder: Path) -> list[Path]:
    """Documents with half a pair in every text: as keys, names, paths, messages."""
    preview = ChangeReport(
        "preview", HALF, HALF, HALF, verdict="allowed", fit=HALF, quota=(HALF,), problems=[HALF], notes=[HALF],
        outputs=(HALF,), project=HALF,
    )  # fmt: skip
    content = preview.as_json() | {
        "changes": {"create": [{"name": HALF, "type": HALF, "properties": [HALF]}], HALF: []}
    }
    content["violations"] = [{"pack": HALF, "policy": HALF, "level": HALF, "resource": HALF, "message": HALF}]
    rehearsal = {"kind": "rehearsal", "project": HALF, "stack": HALF, "verdict": HALF, "problems": [HALF]}
    files = [folder / f"{HALF.encode(errors='replace').decode()}{number}.json" for number in range(2)]
    for file, one in zip(files, (content, rehearsal), strict=True):
        file.write_text(json.dumps(one))
    return files


@pytest.mark.parametrize("form", ["text", "json", "markdown"])
def test_the_comment_of_documents_with_it_is_written(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    files = documents(tmp_path)
    for name in ("GITHUB_API_URL", "GITHUB_REPOSITORY", "GITHUB_EVENT_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    out = tmp_path / "out.json"
    assert main(["ci", "comment", *map(str, files), "--format", form, "--out", str(out)]) == 0
    shown = capsys.readouterr().out
    for text in (shown, out.read_text(), (tmp_path / "summary.md").read_text()):
        text.encode()
        assert "ab" in text or WHOLE in text
    comment(files, {}).body.encode()
