"""docs/faults.md shows what the command prints and what a deploy says."""

from bezel_localcloud.command.fault import print_kinds
from tests.support.docs.markdown import ROOT, after

DOCUMENT = ROOT / "docs" / "faults.md"
GOLDEN = "tests/e2e/goldens/faults/quota-exceeded.txt"


def test_the_list_is_what_the_command_prints(capsys, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert print_kinds() == 0
    assert after(DOCUMENT, "output of bezel local fault list") == capsys.readouterr().out


def test_the_failure_is_shown_in_the_words_of_the_deploy() -> None:
    lines = [line.strip() for line in (ROOT / GOLDEN).read_text().splitlines()]
    shown = after(DOCUMENT, f"said by {GOLDEN}").splitlines()
    assert len(shown) == 3
    assert all(line in lines for line in shown)
