"""docs/google.md as a script for localcloud: its `sh` blocks in order, with the names and accounts of localcloud.

Marks before a block, which a reader does not see:

- `only Google: REASON`: the block is left out.
- `on localcloud: COMMAND`: this command runs in its place; the reason stands in the first mark.
- `answer: WORD`: what is typed at the question of the block's command.
- `into FILE`: the settings of the block, in YAML, are added to that stack file.
"""

import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

from bezel_localcloud.core.paths import BILLING_ACCOUNT, PROJECT
from tests.support.docs.markdown import ROOT

PAGE = ROOT / "docs" / "google.md"
ONLY_GOOGLE, IN_PLACE, ANSWER, INTO = "only Google", "on localcloud", "answer", "into"
_STEP = re.compile(r"((?:<!-- .*? -->\n)*)```(sh|yaml)\n(.*?)```", re.DOTALL)
_MARK = re.compile(r"<!-- (only Google|on localcloud|answer|into):? (.*?) -->")
OWN = {
    "my-project": PROJECT,
    "user:you@acme.example": f"serviceAccount:deployer@{PROJECT}.iam.gserviceaccount.com",
    "012345-6789AB-CDEF01": BILLING_ACCOUNT.removeprefix("billingAccounts/"),
}
"""Name of the page -> name on localcloud."""


@dataclass(frozen=True)
class Step:
    """A block of the page.

    Attributes:
        language: Its language.
        text: Its content.
        marks: Its marks by their kind.
    """

    language: str
    text: str
    marks: dict[str, str] = field(default_factory=dict)

    @property
    def script(self) -> str:
        """What runs on localcloud; "" for nothing."""
        if self.language == "yaml":
            return _setting_script(self.marks[INTO], self.text)
        if ONLY_GOOGLE in self.marks:
            return self.marks.get(IN_PLACE, "")
        return self.text


def steps(page: Path = PAGE) -> list[Step]:
    """The blocks of the page in order."""
    return [
        Step(language, text, dict(_MARK.findall(marks))) for marks, language, text in _STEP.findall(page.read_text())
    ]


def script(all_steps: list[Step]) -> str:
    """One script of all blocks, which ends at the first that fails and says which it is."""
    lines = ["set -eu"]
    for number, step in enumerate(all_steps, start=1):
        lines += [f"echo '=== block {number}'", step.script]
    return _with_own_names("\n".join(lines) + "\necho '=== end'\n")


def answers(all_steps: list[Step]) -> str:
    """What is typed at the questions, line by line."""
    return "".join(f"{step.marks[ANSWER]}\n" for step in all_steps if ANSWER in step.marks)


def _with_own_names(text: str) -> str:
    for name, own_name in OWN.items():
        text = text.replace(name, own_name)
    return text


def _setting_script(file: str, text: str) -> str:
    """A command that adds settings to a stack file, as a reader does in an editor."""
    merge = (
        "import sys, yaml; file, more = sys.argv[1:]; content = yaml.safe_load(open(file)); "
        "content['config'] |= yaml.safe_load(more); yaml.safe_dump(content, open(file, 'w'), sort_keys=False)"
    )
    return shlex.join([".venv/bin/python", "-c", merge, file, text])
