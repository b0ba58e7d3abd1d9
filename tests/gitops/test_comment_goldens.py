"""The comment of three stacks in each case, word for word, and short enough for a phone.

The goldens are in `goldens/comments`; `BEZEL_RECORD=1 pytest tests/gitops/test_comment_goldens.py` writes them.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bezel.gitops.comment.body import body_of, sections_of, visible
from bezel.gitops.comment.sections import VISIBLE
from tests.support.components.fake_cloud_run import running
from tests.support.gitops.documents import CASES, COMMIT, preview, rehearsal

if TYPE_CHECKING:
    from collections.abc import Iterator

GOLDENS = Path(__file__).with_name("goldens") / "comments"
RUN = "https://forge.example/team/gemma/actions/runs/7"


@pytest.fixture(autouse=True)
def cloud_run(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Cloud Run as each stack finds it in its first preview: no service yet, and quota enough."""
    with running(monkeypatch) as fake:
        fake.quota = 200
        yield


def visible_text(text: str) -> str:
    """What is visible without a touch: without the folded detail, and links without their addresses."""
    return re.sub(r"\]\([^)]*\)", "]", re.sub(r"<details>.*?</details>", "", text, flags=re.DOTALL))


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("stack", ["l4-qat", "rtx6000-mtp", "v6e4-moe"])
def test_the_comment_of_a_stack_is_as_recorded(stack: str, case: str) -> None:
    documents = [preview(stack, case)]
    if case in ("first deploy", "failed"):
        documents.append(rehearsal(stack, "passed" if case == "first deploy" else "failed"))
    body = visible(body_of(sections_of(documents, COMMIT, RUN)))
    file = GOLDENS / f"{stack}-{case.replace(' ', '-')}.md"
    if os.environ.get("BEZEL_RECORD") == "1":
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(body)
    assert body == file.read_text(), "look at why, then: BEZEL_RECORD=1 pytest tests/gitops/test_comment_goldens.py"
    seen = visible_text(body)
    assert len(seen) <= VISIBLE["preview"] + VISIBLE["rehearsal"]
    assert "```" not in body
    assert not re.search(r"^\s*\|", body, re.MULTILINE)  # no table, which a phone cuts
    price, verdict = seen.index("USD/h"), seen.index("Preview:")
    assert price < verdict < seen.index("**To ")
